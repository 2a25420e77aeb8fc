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

class Table:
    """Columns of equal length; attribute access gives a column, `where` selects rows.

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> table = sm.comparison.compare(sm.Linear(5), {(20, 30): 50}, n_max=2, n_jobs=1)
    >>> row = table.where(method="all_cycles", quantity="moment", n=2)
    >>> bool(abs(row.bias[0]) < 4 * row.bias_se[0])
    True
    """
    def __getattr__(self, name: str) -> Any: ...
    def __len__(self) -> int: ...
    def __init__(self, rows: Any) -> None: ...
    def sort(self, name: str) -> Table:
        """Sort rows.

        Parameters
        ----------
        name : str
            a column

        Returns
        -------
        Table
            the rows in increasing order of that column, as a `Table`
        """
    def where(self, **conditions: Any) -> Table:
        """Select rows.

        Parameters
        ----------
        **conditions : Any
            column = value, or column = list of values

        Returns
        -------
        Table
            the rows that meet them all, as a `Table`
        """
    def plot(self, ax: Axes | None = ..., *, column: str = ..., quantity: str = ...) -> Axes:
        """A column against the order, over the truth or its square, for a table of one size.

        Parameters
        ----------
        ax : Axes | None, default None
            matplotlib axes; None makes new ones
        column : str, default 'mean'
            or "bias", "variance", "mse"
        quantity : str, default 'moment'
            or "root", "positive_root"

        Returns
        -------
        Axes
            the axes
        """

def compare(process: Any, sizes: Mapping[tuple[int, int], int], *, estimators: Sequence[str] = ..., n_max: int = ..., **options: Any) -> Table:
    """Run the experiment: every estimator, on many matrices of every size, summarised.

    Parameters
    ----------
    process : Any
        object with `sample(P, Q, random_state)` and `moments(n_max)`
    sizes : Mapping[tuple[int, int], int]
        {(P, Q): number of matrices}
    estimators : Sequence[str], default ('naive', 'kv_row', 'kv_col', 'increasing', 'all_cycles')
        names from `ESTIMATORS`
    n_max : int, default 7
        highest order
    **options : Any
        seed, n_jobs, progress, checkpoint: see `draw_samples`

    Returns
    -------
    Table
        `Table`

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> table = sm.comparison.compare(sm.Linear(5), {(20, 30): 50}, n_max=2, n_jobs=1)
    >>> row = table.where(method="all_cycles", quantity="moment", n=2)
    >>> bool(abs(row.bias[0]) < 4 * row.bias_se[0])
    True
    """

def read_study(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Table]:
    """Settings and table of a stored study.

    Parameters
    ----------
    path : str | os.PathLike[str]
        a file that `run_study` wrote

    Returns
    -------
    tuple[dict[str, Any], Table]
        (settings, `Table`)

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> few = dict(repetitions=2, n_jobs=1, output="few")
    >>> path = sm.comparison.run_study("small_dim2", **few)
    >>> settings, table = sm.comparison.read_study(path)
    >>> settings["sizes"]
    [[30, 60, 2]]
    """

def run_study(name: str, *, repetitions: int | None = ..., n_jobs: int | None = ..., output: str | os.PathLike[str] = ..., progress: bool = ..., force: bool = ...) -> Path:
    """Compute one study and write it to `comparison_<name>.json`; resumes if interrupted.

    Parameters
    ----------
    name : str
        a key of `STUDIES`
    repetitions : int | None, default None
        matrices of each size, None for as many as the study says
    n_jobs : int | None, default None
        number of processes
    output : str | os.PathLike[str], default 'results'
        folder to write to
    progress : bool, default False
        show a tqdm progress bar
    force : bool, default False
        replace a stored study that has more matrices

    Returns
    -------
    Path
        path of the file

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> few = dict(repetitions=2, n_jobs=1, output="few")
    >>> path = sm.comparison.run_study("small_dim2", **few)
    >>> settings, table = sm.comparison.read_study(path)
    >>> settings["sizes"]
    [[30, 60, 2]]
    """
