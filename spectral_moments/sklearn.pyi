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
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]

class SpectralMoments(BaseEstimator):  # type: ignore[misc]
    """Spectral moments of the operator behind a matrix, as an estimator of scikit-learn.

    Parameters
    ----------
    n_max : int, default 2
        highest order
    center : bool, default False
        True: remove the mean over inputs, without bias
    method : str, default 'auto'
        as for `estimate`
    population : tuple[int | None, int | None] | None, default None
        (inputs, features): sizes of finite populations; None: infinite
    n_permutations : int | None, default None
        random orders or pairings to average over; None: as many as pay
    random_state : int | np.random.Generator | None, default None
        None, an int or a numpy Generator
    n_jobs : int | None, default None
        number of threads, None for all cores

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> model = sm.sklearn.SpectralMoments(n_max=2).fit(phi)
    >>> print(round(model.dimension_, 1))
    20.0
    """
    def __init__(self, n_max: int = ..., *, center: bool = ..., method: str = ..., population: tuple[int | None, int | None] | None = ..., n_permutations: int | None = ..., random_state: int | np.random.Generator | None = ..., n_jobs: int | None = ...) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike | None = ...) -> SpectralMoments:
        """Estimate; the results are `estimate_`, `moments_`, `stderr_`, `dimension_`, ...

        Parameters
        ----------
        X : ArrayLike
            matrix (inputs, features), NaN where missing
        y : ArrayLike | None, default None
            not used

        Returns
        -------
        SpectralMoments
            the estimator itself
        """
