"""Unbiased spectral moments of kernel integral operators.

Written by `make export` from the chapters: do not edit.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

Floats = npt.NDArray[np.float64]

class Recording(NamedTuple):
    """Responses of one area to repeated images.

    Attributes
    ----------
    trials
        (repeats, images, sites), normalised for each site and repeat
    objects
        (images,) name of the object in each image
    animals
        (sites,) name of the animal of each site

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> folder = sm.recordings.fetch()  # once, 38 MB
    >>> sm.recordings.load("V4", "Tito").trials.shape
    (28, 2562, 18)
    """
    trials: Floats
    objects: npt.NDArray[np.str_]
    animals: npt.NDArray[np.str_]

def fetch(folder: str | os.PathLike[str] | None = ..., *, archive: str | os.PathLike[str] | None = ..., package: Any = ..., progress: bool = ...) -> Path:
    """Fetch the recordings once; what is there already is left alone.

    Parameters
    ----------
    folder : str | os.PathLike[str] | None, default None
        where the files go; None: `cache_folder`
    archive : str | os.PathLike[str] | None, default None
        path of the archive, if you have it already; None: fetch it
    package : Any, default Package(project='dimensionality', file='dimensionality-0.1.0.tar.gz', size=38255022, sha256='f66cb0ec1fd142a0799627ee634309b820f66fa4adfc75e7b9a56ba28170b147', folder='dimensionality-0.1.0/legacy/biology/BrainScore', members={'IT_Chabo.npz': '017a4658e6bf2db4b61299fc8682c78f3ea1725c41d5f65fa592c5aaf720d32c', 'IT_Tito.npz': 'cdaf172885a4ecb259146f7bdfafe2b26058431dd237f74e086341ebaffdd626', 'V4_Chabo.npz': '53aa041ffecd710f5b33efc85d7fc4c7395b9b841c39fb37e194a7365422cadb', 'V4_Tito.npz': '9e9c6bd7f256f841f9eebebce6951fc05774d33705943c8ff79d058f1b99e72e'})
        a `Package`
    progress : bool, default True
        whether to report on the standard error

    Returns
    -------
    Path
        the folder

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> folder = sm.recordings.fetch()  # once, 38 MB
    >>> sm.recordings.load("V4", "Tito").trials.shape
    (28, 2562, 18)
    """

def load(area: str, animal: str | None = ..., *, folder: str | os.PathLike[str] | None = ...) -> Recording:
    """A recording that has been fetched.

    Parameters
    ----------
    area : str
        "IT" or "V4"
    animal : str | None, default None
        "Chabo" or "Tito"; None: the sites of both
    folder : str | os.PathLike[str] | None, default None
        where the files are; None: `cache_folder`

    Returns
    -------
    Recording
        a `Recording`

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> folder = sm.recordings.fetch()  # once, 38 MB
    >>> sm.recordings.load("V4", "Tito").trials.shape
    (28, 2562, 18)
    """
