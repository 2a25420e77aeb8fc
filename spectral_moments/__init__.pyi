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
from . import comparison as comparison
from . import recordings as recordings
from . import sklearn as sklearn

__version__: str
__all__: list[str]

class Activations(npt.NDArray[np.float64]):
    """A measurement matrix with the labels of its rows and columns, None where all differ.

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU())
    >>> sm.record(model, "1", torch.randn(40, 8)).shape
    (40, 16)
    """
    @property
    def T(self) -> Activations:
        """The transposed matrix, with its labels.
        """
    def transpose(self, *axes: Any) -> Any:
        """The same as `T`.

        Parameters
        ----------
        *axes : Any
            as for an array

        Returns
        -------
        Any
            `T`, or a plain array if the axes are in another order
        """

class Alignment:
    """The alignment of two systems, with its standard error.

    Attributes
    ----------
    value
        corrected; NaN if a denominator is not positive
    stderr
        standard error; NaN if it is not known
    ratio
        the plain ratio of the three unbiased traces
    numerator
        tr T1 T2
    denominators
        tr T1^2 and tr T2^2, each with its error
    stderr_rows
        the part of `stderr` that is due to the inputs
    stderr_columns
        the parts due to the features of each system; one if shared
    names
        of the two systems
    shapes
        (T, P, Q) of each
    center
        whether the mean over inputs was removed
    notes
        what should not be trusted

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> psi = phi @ np.random.default_rng(0).standard_normal((200, 50))  # a read-out
    >>> print(round(sm.alignment(phi, psi).value, 1))
    1.0
    """
    value: float
    stderr: float
    ratio: float
    numerator: WithError
    denominators: tuple[Any, ...]
    stderr_rows: float
    stderr_columns: tuple[Any, ...]
    names: tuple[Any, ...]
    shapes: tuple[Any, ...]
    center: bool
    notes: list[Any]
    def interval(self, level: float = ...) -> tuple[float, float]:
        """Interval for the alignment.

        Parameters
        ----------
        level : float, default 0.95
            nominal coverage

        Returns
        -------
        tuple[float, float]
            (low, high), not clipped
        """
    def plot(self, ax: Axes | None = ..., *, at: float = ..., **style: Any) -> Axes:
        """The value with its 95% interval, clipped to [0, 1].

        Parameters
        ----------
        ax : Axes | None, default None
            matplotlib axes; None makes new ones
        at : float, default 0.0
            place of the point
        **style : Any
            properties of the point, for instance label and color

        Returns
        -------
        Axes
            the axes
        """
    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, strings and lists, ready for JSON; None where unknown.
        """

class AlignmentStream:
    """Alignments of systems whose inputs arrive in batches.

    Parameters
    ----------
    center : bool, default True
        whether the mean over inputs is removed, within each batch
    shared_features : bool, default False
        whether column a of all systems is the same feature
    random_state : int | np.random.Generator | None, default None
        None, an int or a numpy Generator

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> stream = sm.AlignmentStream(random_state=1)
    >>> for batch in np.split(phi, 2):
    ...     _ = stream.update({"a": batch[:, :100], "b": batch[:, 100:]})
    >>> table = stream.estimate()
    """
    def __init__(self, *, center: bool = ..., shared_features: bool = ..., random_state: int | np.random.Generator | None = ...) -> None: ...
    @property
    def n_rows(self) -> int:
        """Number of inputs seen so far.
        """
    @property
    def n_batches(self) -> int:
        """Number of batches seen so far.
        """
    def update(self, systems: Mapping[str, ArrayLike]) -> AlignmentStream:
        """Take in a batch of at least four inputs, of all systems.

        Parameters
        ----------
        systems : Mapping[str, ArrayLike]
            dict: name -> the batch (inputs, features) or (trials, inputs, features)

        Returns
        -------
        AlignmentStream
            the stream itself
        """
    def merge(self, other: AlignmentStream) -> AlignmentStream:
        """Join two streams.

        Parameters
        ----------
        other : AlignmentStream
            a stream of other inputs to the same systems

        Returns
        -------
        AlignmentStream
            a new stream; both are left as they are
        """
    def estimate(self) -> Alignments:
        """Alignments of all pairs, of the inputs so far; more may follow.

        Returns
        -------
        Alignments
            `Alignments`
        """

class Alignments:
    """The alignments of several systems, each pair with its error.

    Attributes
    ----------
    pairs
        (name, name) -> `Alignment`, each pair once
    names
        of the systems
    notes
        what should not be trusted

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> table = sm.alignments({"a": phi, "b": phi[:, :100], "c": phi[:, 100:]})
    >>> table.values.shape
    (3, 3)
    """
    pairs: dict[Any, Any]
    names: tuple[Any, ...]
    notes: list[Any]
    def __getitem__(self, key: Any, /) -> Any: ...
    @property
    def values(self) -> Floats:
        """Matrix of the alignments.
        """
    @property
    def stderr(self) -> Floats:
        """Matrix of their standard errors.
        """
    def plot(self, ax: Axes | None = ..., **style: Any) -> Axes:
        """A heat map, with values and errors.

        Parameters
        ----------
        ax : Axes | None, default None
            matplotlib axes; None makes new ones
        **style : Any
            properties of the image, for instance cmap

        Returns
        -------
        Axes
            the axes
        """

class Bounds(NamedTuple):
    """Two numbers with the truth between them, at a stated level.

    Attributes
    ----------
    low
    high

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> bounds = sm.operator_norm(sm.estimate(phi, 3))
    """
    low: float
    high: float

class Comparison:
    """Several estimates: their differences from the first, in a table, and a plot.

    Attributes
    ----------
    estimates
        name: Estimate

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> other = sm.Linear(40, scale=0.05).sample(100, 200, random_state=2)
    >>> table = sm.compare({"a": sm.estimate(phi, 2), "b": sm.estimate(other, 2)})
    >>> table.rows[1]["p"] < 0.01
    True
    """
    estimates: dict[Any, Any]
    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict for each order of each estimate after the first.
        """
    def plot(self, ax: Axes | None = ..., *, truth: ArrayLike | None = ...) -> Axes:
        """All estimates side by side, with 95% intervals where they have them.

        Parameters
        ----------
        ax : Axes | None, default None
            matplotlib axes; None makes new ones
        truth : ArrayLike | None, default None
            array of m(1), m(2), ... if known, drawn dashed

        Returns
        -------
        Axes
            the axes
        """

class CrossMoments:
    """Traces of words in two operators, with their standard errors.

    Attributes
    ----------
    words
        letters a (first system) and b (second)
    values
        the traces
    stderr
        their standard errors
    covariance
        of the traces
    shapes
        (T, P, Q) of each system
    center
        whether the mean over inputs was removed
    notes
        what should not be trusted

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> words = sm.cross_moments(phi[:, :100], phi[:, 100:], ("ab", "aab"))
    >>> words.values.shape
    (2,)
    """
    words: tuple[Any, ...]
    values: Floats
    stderr: Floats
    covariance: Floats
    shapes: tuple[Any, ...]
    center: bool
    notes: list[Any]
    def __getitem__(self, key: Any, /) -> Any: ...

class Dimensions:
    """The dimensions of several layers, each with its error.

    Attributes
    ----------
    estimates
        name: `Estimate`

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU())
    >>> with sm.watch(model, ["0", "1"], n_max=2, random_state=1) as watched:
    ...     _ = model(torch.randn(64, 8))
    >>> table = watched.dimension()
    """
    estimates: dict[Any, Any]
    def __getitem__(self, key: Any, /) -> Any: ...
    @property
    def names(self) -> tuple[str, ...]:
        """Names of the layers.
        """
    @property
    def values(self) -> Floats:
        """Dimensions of the layers.
        """
    @property
    def stderr(self) -> Floats:
        """Their standard errors.
        """
    def to_frame(self) -> Any:
        """The table as a data frame.

        Returns
        -------
        Any
            pandas data frame, one row for each layer
        """

class Discrete:
    """A finite population: inputs are rows of `table`, features are its columns.

    Parameters
    ----------
    table : ArrayLike
        values of the map phi, shape (A, B)
    input_probs : ArrayLike | None, default None
        probability of each of the A inputs; None means equal
    feature_probs : ArrayLike | None, default None
        probability of each of the B features; None means equal

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> process = sm.Discrete([[1.0, 2.0], [0.0, 1.0]])
    >>> process.moments(2)
    array([1.5  , 2.125])
    """
    def __init__(self, table: ArrayLike, *, input_probs: ArrayLike | None = ..., feature_probs: ArrayLike | None = ...) -> None: ...
    def sample(self, P: int, Q: int, random_state: int | np.random.Generator | None = ...) -> Floats:
        """Draw inputs and features independently, with replacement.

        Parameters
        ----------
        P : int
            number of inputs (rows)
        Q : int
            number of features (columns)
        random_state : int | np.random.Generator | None, default None
            None, an int or a numpy Generator

        Returns
        -------
        Floats
            measurement matrix, shape (P, Q)
        """
    def eigenvalues(self, count: int | None = ...) -> Floats:
        """Eigenvalues of the operator: squared singular values of the weighted table.

        Parameters
        ----------
        count : int | None, default None
            how many; None means all that can be non-zero, min(A, B)

        Returns
        -------
        Floats
            the largest eigenvalues of the operator, in decreasing order
        """
    def moments(self, n_max: int) -> Floats:
        """Spectral moments of the kernel integral operator.

        Parameters
        ----------
        n_max : int
            highest order

        Returns
        -------
        Floats
            array whose entry n - 1 is m(n)
        """
    def expectation(self, statistic: Callable[..., Any], P: int, Q: int) -> Any:
        """Average `statistic` over every sample of P inputs and Q features.

        Parameters
        ----------
        statistic : Callable[..., Any]
            function of a (P, Q) matrix that returns a number or an array
        P : int
            number of inputs (rows)
        Q : int
            number of features (columns)

        Returns
        -------
        Any
            exact expectation of `statistic`, same shape as its value
        """

class Estimate:
    """Estimated spectral moments with their standard errors.

    Attributes
    ----------
    values
        estimates of m(1), ..., m(n_max)
    stderr
        standard errors; NaN where there are none
    methods
        the method that gave each order
    shape
        (T, P, Q): trials, inputs, features
    center
        whether the mean over inputs was removed
    covariance
        of the estimates
    notes
        what should not be trusted
    probe_error
        the part of `stderr` that more probes would remove
    stderr_rows
        the part of `stderr` that is due to the inputs
    stderr_columns
        the part that is due to the features
    replicates
        estimates without each row, (n_max, P), and without each column, (n_max, Q)

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> est = sm.estimate(phi, 3)
    >>> est.values.round(3), est.stderr.round(3)
    (array([0.998, 0.049, 0.003]), array([0.041, 0.005, 0.001]))
    >>> low, high = est.interval(0.9)
    >>> bool((low < est.values).all())
    True
    """
    values: Floats
    stderr: Floats
    methods: list[Any]
    shape: tuple[Any, ...]
    center: bool
    covariance: Floats
    notes: list[Any]
    probe_error: Floats
    stderr_rows: Floats
    stderr_columns: Floats
    replicates: tuple[Any, ...]
    @property
    def orders(self) -> npt.NDArray[np.int64]:
        """The orders 1..n_max.
        """
    @property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Which orders have a relative standard error below one half, as all lower ones.
        """
    def interval(self, level: float = ...) -> tuple[Floats, Floats]:
        """Intervals for the moments, with the skewness of the errors where it is known.

        Parameters
        ----------
        level : float, default 0.95
            nominal coverage

        Returns
        -------
        tuple[Floats, Floats]
            (low, high), arrays over n
        """
    def expected_stderr(self, P: int, Q: int) -> Floats:
        """Standard errors to expect of a matrix of another size.

        Parameters
        ----------
        P : int
            number of inputs
        Q : int
            number of features

        Returns
        -------
        Floats
            array over n; NaN where there are no errors
        """
    def dimension(self) -> WithError:
        """Participation ratio m(1)^2 / m(2), the bias of the ratio removed by the jackknife.

        Returns
        -------
        WithError
            (value, stderr), a named tuple; NaN if m(2) is not positive
        """
    def to_frame(self) -> Any:
        """The table as a data frame.

        Returns
        -------
        Any
            pandas data frame, one row for each order
        """
    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, strings and lists, ready for JSON; None where unknown.
        """
    def plot(self, ax: Axes | None = ..., *, shift: float = ..., **style: Any) -> Axes:
        """Estimates, 95% intervals, and upper limits where the estimate is not positive.

        Parameters
        ----------
        ax : Axes | None, default None
            matplotlib axes; None makes new ones
        shift : float, default 0.0
            moves the points to the right, to tell several estimates apart
        **style : Any
            properties of the line, for instance label and color

        Returns
        -------
        Axes
            the axes
        """

class EstimateWarning(UserWarning):
    """An estimate that should not be trusted without a second look.

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> est = sm.estimate(phi, 4)
    >>> print(est.dimension())  # the truth is 20
    20.03 +- 1.1
    >>> est = sm.estimate(phi, 2, center=True, population=(None, 200))  # these features
    """

class LawFit:
    """A law fitted to moments: parameters with errors, and a test of the fit.

    Attributes
    ----------
    law
        "power", "exponential" or "broken"
    parameters
        name: value; the exponent comes first
    stderr
        name: standard error
    covariance
        of exponent(s) and log scale
    orders
        that were fitted
    moments
        of the law, at these orders
    chi_square
        of the residuals
    dof
        its degrees of freedom
    p_value
        small if the moments do not follow the law
    est
        what was fitted
    bent
        what the law's bending took from the exponent, in standard errors

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> many = sm.PowerLaw(1.0).sample(150, 300, random_state=1)
    >>> fit = sm.power_law(sm.estimate(many, 5, random_state=1))
    >>> abs(fit.exponent - 1) < 0.2
    True
    """
    law: str
    parameters: dict[Any, Any]
    stderr: dict[Any, Any]
    covariance: Floats
    orders: Floats
    moments: Floats
    chi_square: float
    dof: int
    p_value: float
    est: Any
    bent: float
    @property
    def exponent(self) -> float:
        """The exponent of a power law, or the first of a broken one.
        """
    @property
    def scale(self) -> float:
        """The largest eigenvalue.
        """
    def interval(self, level: float = ...) -> tuple[float, float]:
        """Interval for the exponent, symmetric on the log scale.

        Parameters
        ----------
        level : float, default 0.95
            nominal coverage

        Returns
        -------
        tuple[float, float]
            (low, high)
        """
    def eigenvalues(self, count: int) -> Floats:
        """Eigenvalues of the fitted law.

        Parameters
        ----------
        count : int
            how many

        Returns
        -------
        Floats
            array, in decreasing order
        """
    def plot(self, ax: Axes | None = ..., *, count: int = ..., level: float = ..., **style: Any) -> Axes:
        """The fitted spectrum against rank, with the band of its parameters.

        Parameters
        ----------
        ax : Axes | None, default None
            matplotlib axes; None makes new ones
        count : int, default 100
            highest rank
        level : float, default 0.95
            of the band
        **style : Any
            properties of the line, for instance label and color

        Returns
        -------
        Axes
            the axes
        """

class Linear:
    """Bilinear process: phi(x, w) = sqrt(scale) x.w, with standard normal x and w.

    Parameters
    ----------
    dim : int
        dimension d of inputs and features, the rank of the operator
    scale : float, default 1.0
        the common value of all d eigenvalues

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> sm.Linear(20, scale=0.05).moments(3)
    array([1.    , 0.05  , 0.0025])
    """
    def __init__(self, dim: int, *, scale: float = ...) -> None: ...
    def sample(self, P: int, Q: int, random_state: int | np.random.Generator | None = ...) -> Floats:
        """Draw inputs and features and evaluate phi.

        Parameters
        ----------
        P : int
            number of inputs (rows)
        Q : int
            number of features (columns)
        random_state : int | np.random.Generator | None, default None
            None, an int or a numpy Generator

        Returns
        -------
        Floats
            measurement matrix, shape (P, Q)
        """
    def eigenvalues(self, count: int | None = ...) -> Floats:
        """Eigenvalues of the kernel integral operator.

        Parameters
        ----------
        count : int | None, default None
            how many; None means all `dim` that are not zero

        Returns
        -------
        Floats
            the largest eigenvalues of the operator, in decreasing order
        """
    def moments(self, n_max: int) -> Floats:
        """Spectral moments of the kernel integral operator.

        Parameters
        ----------
        n_max : int
            highest order

        Returns
        -------
        Floats
            array whose entry n - 1 is m(n)
        """

class LinearPair:
    """Two linear systems on one latent input, turned against each other.

    Parameters
    ----------
    dim : int
        number of dimensions that each system sees
    angle : float
        between what they see, from 0 to pi / 2
    exponent : float, default 1.0
        eigenvalue number l of both operators is l^-exponent
    mean : float, default 0.0
        of every feature, over inputs

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> round(sm.LinearPair(5, 0.0).alignment(), 6)
    1.0
    """
    def __init__(self, dim: int, angle: float, *, exponent: float = ..., mean: float = ...) -> None: ...
    def sample(self, P: int, Q1: int, Q2: int, random_state: int | np.random.Generator | None = ...) -> tuple[Floats, Floats]:
        """Draw inputs and the features of both systems.

        Parameters
        ----------
        P : int
            number of inputs
        Q1 : int
            number of features of the first system
        Q2 : int
            number of features of the second system
        random_state : int | np.random.Generator | None, default None
            None, an int or a numpy Generator

        Returns
        -------
        tuple[Floats, Floats]
            two matrices, (P, Q1) and (P, Q2)
        """
    def moment(self, word: str) -> float:
        """The trace of a word in the two operators, centred.

        Parameters
        ----------
        word : str
            letters a and b

        Returns
        -------
        float
            float
        """
    def alignment(self) -> float:
        """The alignment of the two operators.

        Returns
        -------
        float
            float
        """

class PowerLaw:
    """Bilinear process with eigenvalues that fall like a power of the rank.

    Parameters
    ----------
    exponent : float
        a: eigenvalue number l is scale * l^-a
    rank : int, default 1000
        number of eigenvalues that are not zero
    scale : float, default 1.0
        the largest eigenvalue

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> process = sm.PowerLaw(1.0, 100)
    >>> process.eigenvalues(3).round(3)
    array([1.   , 0.5  , 0.333])
    """
    def __init__(self, exponent: float, rank: int = ..., *, scale: float = ...) -> None: ...
    def sample(self, P: int, Q: int, random_state: int | np.random.Generator | None = ...) -> Floats:
        """Draw inputs and features and evaluate phi.

        Parameters
        ----------
        P : int
            number of inputs (rows)
        Q : int
            number of features (columns)
        random_state : int | np.random.Generator | None, default None
            None, an int or a numpy Generator

        Returns
        -------
        Floats
            measurement matrix, shape (P, Q)
        """
    def eigenvalues(self, count: int | None = ...) -> Floats:
        """Eigenvalues of the kernel integral operator.

        Parameters
        ----------
        count : int | None, default None
            how many; None means all `rank` that are not zero

        Returns
        -------
        Floats
            the largest eigenvalues of the operator, in decreasing order
        """
    def moments(self, n_max: int) -> Floats:
        """Spectral moments of the kernel integral operator.

        Parameters
        ----------
        n_max : int
            highest order

        Returns
        -------
        Floats
            array whose entry n - 1 is m(n)
        """

class RBF:
    """Random Fourier features of Gaussian inputs: phi(x, (w, b)) = sqrt(2) sin(w.x + b).

    Parameters
    ----------
    dim : int
        dimension d of the inputs
    input_cov : ArrayLike, default 1.0
        covariance of the inputs: a number, d variances, or a matrix
    kernel_cov : ArrayLike, default 1.0
        covariance of the kernel (the inverse of that of w), likewise

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> process = sm.RBF(3, kernel_cov=0.25)
    >>> process.sample(50, 80, random_state=1).shape
    (50, 80)
    >>> process.moments(2).round(4)
    array([1.    , 0.0143])
    """
    def __init__(self, dim: int, *, input_cov: ArrayLike = ..., kernel_cov: ArrayLike = ...) -> None: ...
    def sample(self, P: int, Q: int, random_state: int | np.random.Generator | None = ...) -> Floats:
        """Draw inputs and features and evaluate phi.

        Parameters
        ----------
        P : int
            number of inputs (rows)
        Q : int
            number of features (columns)
        random_state : int | np.random.Generator | None, default None
            None, an int or a numpy Generator

        Returns
        -------
        Floats
            measurement matrix, shape (P, Q)
        """
    def kernel(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """The kernel exp(-(x - y).inv(kernel_cov).(x - y) / 2).

        Parameters
        ----------
        x : ArrayLike
            inputs, shape (N, d)
        y : ArrayLike
            inputs, shape (M, d)

        Returns
        -------
        Floats
            kernel of every pair, shape (N, M)
        """
    def moments(self, n_max: int) -> Floats:
        """Spectral moments of the kernel integral operator.

        Parameters
        ----------
        n_max : int
            highest order

        Returns
        -------
        Floats
            array whose entry n - 1 is m(n)
        """
    def log_moments(self, n_max: int) -> Floats:
        """Logarithms of the spectral moments, also of those too small for a float.

        Parameters
        ----------
        n_max : int
            highest order

        Returns
        -------
        Floats
            array whose entry n - 1 is log m(n)
        """
    def eigenvalues(self, count: int) -> Floats:
        """Eigenvalues of the kernel integral operator.

        Parameters
        ----------
        count : int
            how many, with multiplicity; there is no end to them

        Returns
        -------
        Floats
            the largest eigenvalues of the operator, in decreasing order
        """
    @property
    def operator_norm(self) -> float:
        """The largest eigenvalue.
        """
    def multi_indices(self, count: int) -> npt.NDArray[np.int64]:
        """Degrees of the eigenfunctions, in the order of `eigenvalues`.

        Parameters
        ----------
        count : int
            how many

        Returns
        -------
        npt.NDArray[np.int64]
            array of degrees along the rows of `axes`, shape (count, d)
        """
    def eigenfunctions(self, x: ArrayLike, count: int) -> Floats:
        """Eigenfunctions of the operator, orthonormal under the law of the inputs.

        Parameters
        ----------
        x : ArrayLike
            inputs, shape (N, d)
        count : int
            how many

        Returns
        -------
        Floats
            values at the inputs, shape (N, count), in the order of `eigenvalues`
        """

class RBFPair:
    """Random Fourier features of two widths, on standard normal inputs.

    Parameters
    ----------
    dim : int
        dimension of the inputs
    kernel_covs : Sequence[float]
        two variances, those of the kernels

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> phi, psi = sm.RBFPair(2, (0.5, 1.0)).sample(40, 30, 20, random_state=1)
    >>> phi.shape, psi.shape
    ((40, 30), (40, 20))
    """
    def __init__(self, dim: int, kernel_covs: Sequence[float]) -> None: ...
    def sample(self, P: int, Q1: int, Q2: int, random_state: int | np.random.Generator | None = ...) -> tuple[Floats, Floats]:
        """Draw inputs and the features of both systems.

        Parameters
        ----------
        P : int
            number of inputs
        Q1 : int
            number of features of the first system
        Q2 : int
            number of features of the second system
        random_state : int | np.random.Generator | None, default None
            None, an int or a numpy Generator

        Returns
        -------
        tuple[Floats, Floats]
            two matrices, (P, Q1) and (P, Q2)
        """
    def moment(self, word: str) -> float:
        """The trace of the product of two centred operators.

        Parameters
        ----------
        word : str
            "aa", "ab" or "bb"

        Returns
        -------
        float
            float
        """
    def alignment(self) -> float:
        """The alignment of the two operators.

        Returns
        -------
        float
            float
        """

class ReLU:
    """Rectified features on the unit sphere: phi(x, w) = sqrt(2 scale) max(0, w.x).

    Parameters
    ----------
    dim : int
        dimension d of inputs and weights, at least 3
    scale : float, default 1.0
        the trace m(1)

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> sm.ReLU(3).moments(2).round(4)
    array([1.    , 0.2267])
    """
    def __init__(self, dim: int, *, scale: float = ...) -> None: ...
    def sample(self, P: int, Q: int, random_state: int | np.random.Generator | None = ...) -> Floats:
        """Draw inputs and weights and evaluate phi.

        Parameters
        ----------
        P : int
            number of inputs (rows)
        Q : int
            number of features (columns)
        random_state : int | np.random.Generator | None, default None
            None, an int or a numpy Generator

        Returns
        -------
        Floats
            measurement matrix, shape (P, Q)
        """
    def eigenvalues(self, count: int) -> Floats:
        """Eigenvalues of the kernel integral operator.

        Parameters
        ----------
        count : int
            how many, with multiplicity; there is no end to them

        Returns
        -------
        Floats
            the largest eigenvalues of the operator, in decreasing order
        """
    def moments(self, n_max: int) -> Floats:
        """Spectral moments of the kernel integral operator; m(1) = k(x, x) is exact.

        Parameters
        ----------
        n_max : int
            highest order

        Returns
        -------
        Floats
            array whose entry n - 1 is m(n)
        """

class Spectrum:
    """Feasible moments and the measure that has them.

    Attributes
    ----------
    values
        feasible moments m(1), ..., m(k)
    stderr
        standard errors: those of the unbiased estimates
    covariance
        likewise
    linearised
        H C H', the spread of the fit alone
    grid
        points s, increasing from 0
    trace
        how much of m(1) the fit has at each point
    est
        the estimate that was fitted
    even
        of the most even measure; or None

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> spectrum = sm.feasible(sm.estimate(phi, 4))
    >>> bool((spectrum.values > 0).all())
    True
    """
    values: Floats
    stderr: Floats
    covariance: Floats
    linearised: Floats
    grid: Floats
    trace: Floats
    est: Any
    even: Floats
    @property
    def moments(self) -> Floats:
        """The feasible moments, `values`.
        """
    @property
    def measure(self) -> tuple[Floats, Floats]:
        """(eigenvalues, how many of each), most even; a trace at zero has no number.
        """
    def interval(self, level: float = ...) -> tuple[Floats, Floats]:
        """Intervals for the moments, on the scale of the n-th root; never below zero.

        Parameters
        ----------
        level : float, default 0.95
            nominal coverage

        Returns
        -------
        tuple[Floats, Floats]
            (low, high), arrays over n
        """
    def eigenvalues(self, count: int | None = ...) -> Floats:
        """Mean of the measure's quantile function between ranks i - 1 and i.

        Parameters
        ----------
        count : int | None, default None
            how many; None: as many as the measure holds

        Returns
        -------
        Floats
            array, in decreasing order; zeros beyond what the measure holds
        """
    def plot(self, ax: Axes | None = ..., *, count: int = ..., level: float = ..., **style: Any) -> Axes:
        """Eigenvalues against rank, with the band of all spectra that fit the moments.

        Parameters
        ----------
        ax : Axes | None, default None
            matplotlib axes; None makes new ones
        count : int, default 30
            highest rank
        level : float, default 0.9
            of the band; None for no band
        **style : Any
            properties of the line, for instance label and color

        Returns
        -------
        Axes
            the axes
        """

class Stream:
    """Moments of a matrix whose rows arrive in batches, in random order or nearly so.

    Parameters
    ----------
    n_features : int
        number of columns Q
    n_max : int
        highest order, at most Q
    center : bool, default False
        True: remove the mean over rows, by differences of random pairs
    shuffle : bool, default True
        False: take rows and columns in the order given
    mergeable : bool, default True
        whether it may come second in `merge`: half as much work again
    random_state : int | np.random.Generator | None, default None
        None, an int or a numpy Generator
    n_jobs : int | None, default None
        number of threads, None for all cores

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> stream = sm.Stream(200, 2, random_state=1)
    >>> for batch in np.split(phi, 4):
    ...     _ = stream.update(batch)
    >>> stream
    Stream(100 rows x 200 features, n_max=2)
    >>> print("{:.1f}".format(stream.estimate().dimension().value))
    20.1
    """
    def __init__(self, n_features: int, n_max: int, *, center: bool = ..., shuffle: bool = ..., mergeable: bool = ..., random_state: int | np.random.Generator | None = ..., n_jobs: int | None = ...) -> None: ...
    @property
    def n_rows(self) -> int:
        """Number of rows seen so far.
        """
    @property
    def mergeable(self) -> bool:
        """Whether this stream may be the second in `merge`.
        """
    def update(self, rows: ArrayLike) -> Stream:
        """Take in further rows; if this is interrupted, the stream stays as it was.

        Parameters
        ----------
        rows : ArrayLike
            the next rows (any number, n_features), or one row; trials (T, number, Q)

        Returns
        -------
        Stream
            the stream itself
        """
    def merge(self, other: Stream) -> Stream:
        """Join two pieces of a matrix.

        Parameters
        ----------
        other : Stream
            the stream of further rows

        Returns
        -------
        Stream
            a new stream; both are left as they are
        """
    def estimate(self, *, stderr: bool = ...) -> Estimate:
        """Moments of the rows so far; more may follow.

        Parameters
        ----------
        stderr : bool, default True
            whether to compute standard errors

        Returns
        -------
        Estimate
            an `Estimate`
        """
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the stream to a file, which is either complete or untouched.

        Parameters
        ----------
        path : str | os.PathLike[str]
            file to write, usually with the ending .npz
        """
    @classmethod
    def load(cls, path: str | os.PathLike[str], *, n_jobs: int | None = ...) -> Stream:
        """Read a stream from a file.

        Parameters
        ----------
        path : str | os.PathLike[str]
            file written by `save`
        n_jobs : int | None, default None
            number of threads, None for all cores

        Returns
        -------
        Stream
            a stream that goes on where the saved one stopped
        """

class SubsampleCheck:
    """Estimates from submatrices beside those from the whole.

    Attributes
    ----------
    shapes
        (rows, columns) of the submatrices
    values
        estimator: list over sizes of arrays (submatrices, orders)
    whole
        estimator: array over orders
    exhaustive
        whether these are all submatrices of a size

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> check = sm.subsample_check(phi, shapes=[(30, 60)], n_draws=50, random_state=1)
    >>> mean, error = check.ratios("all_cycles")  # one, if the size is no matter
    >>> bool((abs(mean - 1) < 5 * error).all())
    True
    """
    shapes: list[Any]
    values: dict[Any, Any]
    whole: dict[Any, Any]
    exhaustive: bool
    def ratios(self, name: str) -> tuple[Floats, Floats]:
        """Means over submatrices in units of the whole: one, if the size does not matter.

        Parameters
        ----------
        name : str
            of an estimator

        Returns
        -------
        tuple[Floats, Floats]
            (means over submatrices / whole, their standard errors), arrays (sizes,
            orders)
        """
    def plot(self, ax: Axes | None = ..., *, order: int = ...) -> Axes:
        """The figure for a reviewer: means with two standard errors, in units of the whole.

        Parameters
        ----------
        ax : Axes | None, default None
            matplotlib axes; None makes new ones
        order : int, default 2
            n of the moment that is drawn

        Returns
        -------
        Axes
            the axes
        """

class Sweep:
    """Dimension of random submatrices against their size.

    Attributes
    ----------
    shapes
        (rows, columns) of each size
    values
        dimensions, shape (sizes, submatrices); negative if m(2) is
    whole
        dimension of the whole matrix

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> sweep = sm.dimension_sweep(phi, (0.5,), n_draws=5, random_state=1)
    >>> sweep.shapes
    [(50, 100)]
    """
    shapes: list[Any]
    values: Floats
    whole: float
    @property
    def means(self) -> Any:
        """One over the mean of 1 / dimension, for each size; infinite if not positive.
        """
    def plot(self, ax: Axes | None = ..., **style: Any) -> Axes:
        """The means, with the 10-90% band of single submatrices, against their size.

        Parameters
        ----------
        ax : Axes | None, default None
            matplotlib axes; None makes new ones
        **style : Any
            properties of the line, for instance label and color

        Returns
        -------
        Axes
            the axes
        """

class Watch:
    """A context that watches layers of a network; made by `watch`, whose arguments it has.

    Attributes
    ----------
    model
    layers
        of pairs (name, module)
    n_max
    center
    positions
    feature_axis
    units
    inputs
    patches
    select
    rng

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU())
    >>> with sm.watch(model, ["0", "1"], n_max=2, random_state=1) as watched:
    ...     _ = model(torch.randn(64, 8))
    >>> table = watched.dimension()
    """
    model: Any
    layers: list[Any]
    n_max: int
    center: bool
    positions: str
    feature_axis: int
    units: int
    inputs: int
    patches: int
    select: Any
    rng: np.random.Generator
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...
    def reset(self) -> None:
        """Forget what was seen, for instance at the start of an epoch.
        """
    @property
    def n_inputs(self) -> dict[str, int]:
        """Number of inputs that each layer has seen.
        """
    def sample(self, name: str) -> Activations:
        """What is kept of a layer.

        Parameters
        ----------
        name : str
            of a layer, as in `estimates()`

        Returns
        -------
        Activations
            `Activations`: the inputs and units that are kept, with their groups
        """
    def estimates(self, *, finite: bool = ...) -> dict[str, Estimate]:
        """Moments of every layer, with errors.

        Parameters
        ----------
        finite : bool, default False
            True: of the units that the layer has, not of the law behind them

        Returns
        -------
        dict[str, Estimate]
            dict: name of a layer -> `Estimate`
        """
    def dimension(self, *, finite: bool = ...) -> Dimensions:
        """Participation ratio of every layer, with errors.

        Parameters
        ----------
        finite : bool, default False
            True: of the units that the layer has, not of the law behind them

        Returns
        -------
        Dimensions
            `Dimensions`
        """
    def alignments(self) -> Alignments:
        """Alignments of all pairs of layers as they are, on the inputs that they all kept.

        Returns
        -------
        Alignments
            `Alignments`
        """

class WithError(NamedTuple):
    """A number and its standard error.

    Attributes
    ----------
    value
    stderr

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> print(sm.participation_ratio(phi))
    20.03 +- 1.1
    """
    value: float
    stderr: float

def alignment(phi: ArrayLike, psi: ArrayLike, *, center: bool = ..., shared_features: bool = ..., random_state: int | np.random.Generator | None = ...) -> Alignment:
    """How alike two systems see the same inputs: unbiased kernel alignment, with its error.

    Parameters
    ----------
    phi : ArrayLike
        first system, (P, Q1) or trials (T, P, Q1), NaN where missing
    psi : ArrayLike
        second system on the same inputs, (P, Q2) or trials (T, P, Q2)
    center : bool, default True
        whether the mean over inputs is removed
    shared_features : bool, default False
        whether column a of both is the same feature
    random_state : int | np.random.Generator | None, default None
        None, an int or a numpy Generator; for trials and gaps only

    Returns
    -------
    Alignment
        `Alignment`

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> psi = phi @ np.random.default_rng(0).standard_normal((200, 50))  # a read-out
    >>> print(round(sm.alignment(phi, psi).value, 1))
    1.0
    """

def alignments(systems: Mapping[str, ArrayLike], *, center: bool = ..., shared_features: bool = ..., population: dict[str, int | None] | None = ..., random_state: int | np.random.Generator | None = ...) -> Alignments:
    """The alignments of all pairs of several systems, with errors.

    Parameters
    ----------
    systems : Mapping[str, ArrayLike]
        dict: name -> matrix (P, Q) or trials (T, P, Q), of the same inputs
    center : bool, default True
        whether the mean over inputs is removed
    shared_features : bool, default False
        whether column a of all is the same feature
    population : dict[str, int | None] | None, default None
        dict: name -> how many features there are; None: infinitely many
    random_state : int | np.random.Generator | None, default None
        None, an int or a numpy Generator; for trials and gaps only

    Returns
    -------
    Alignments
        `Alignments`

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> table = sm.alignments({"a": phi, "b": phi[:, :100], "c": phi[:, 100:]})
    >>> table.values.shape
    (3, 3)
    """

def all_cycles(phi: ArrayLike, n_max: int, *, center: bool = ...) -> Any:
    """Mean over all cycles with distinct rows and columns: unbiased, of least variance.

    Parameters
    ----------
    phi : ArrayLike
        matrix (P, Q) or trials (T, P, Q), NaN where missing; or a torch tensor of
        these
    n_max : int
        highest order, at most 5 and at most min(P, Q)
    center : bool, default False
        whether the mean over inputs is removed

    Returns
    -------
    Any
        array whose entry n - 1 estimates m(n); a tensor with gradients if `phi` is
        one

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> sm.all_cycles(phi, 2).round(3)  # the truth is 1, 0.05
    array([0.998, 0.049])
    """

def compare(estimates: Mapping[str, Estimate]) -> Comparison:
    """Several estimates: differences with errors and p-values, and a plot.

    Parameters
    ----------
    estimates : Mapping[str, Estimate]
        dict of `Estimate`: what the table calls each, and the estimate

    Returns
    -------
    Comparison
        a `Comparison`: print it for the table, `.plot()` for the picture

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> other = sm.Linear(40, scale=0.05).sample(100, 200, random_state=2)
    >>> table = sm.compare({"a": sm.estimate(phi, 2), "b": sm.estimate(other, 2)})
    >>> table.rows[1]["p"] < 0.01
    True
    """

def compare_laws(est: Estimate, orders: Sequence[int] | None = ...) -> dict[str, LawFit]:
    """All laws on the same orders, by the same test.

    Parameters
    ----------
    est : Estimate
        an estimate with .values, .stderr and .covariance
    orders : Sequence[int] | None, default None
        orders to fit; None: from 2 to the last usable one of a family

    Returns
    -------
    dict[str, LawFit]
        dict of `LawFit`, the laws that there are enough orders for

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> fits = sm.compare_laws(sm.estimate(phi, 5, random_state=1))
    """

def cross_moments(phi: ArrayLike, psi: ArrayLike, words: Sequence[str] = ..., *, center: bool = ..., shared_features: bool = ..., random_state: int | np.random.Generator | None = ...) -> CrossMoments:
    """Unbiased traces of words in the operators of two systems, with errors.

    Parameters
    ----------
    phi : ArrayLike
        first system, (P, Q1) or trials (T, P, Q1), NaN where missing
    psi : ArrayLike
        second system on the same inputs, (P, Q2) or trials (T, P, Q2)
    words : Sequence[str], default ('ab', 'aab', 'abb', 'aabb', 'abab')
        words of up to five letters a and b; abb is tr T1 T2 T2
    center : bool, default True
        whether the mean over inputs is removed
    shared_features : bool, default False
        whether column a of both is the same feature
    random_state : int | np.random.Generator | None, default None
        None, an int or a numpy Generator; for trials, gaps, five letters

    Returns
    -------
    CrossMoments
        `CrossMoments`

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> words = sm.cross_moments(phi[:, :100], phi[:, 100:], ("ab", "aab"))
    >>> words.values.shape
    (2,)
    """

def differentiable_dimension(phi: Any, *, center: bool = ..., dtype: Any = ...) -> Any:
    """Participation ratio from unbiased estimates of m(1)^2 and m(2).

    Parameters
    ----------
    phi : Any
        torch tensor (inputs, features), at least 4 x 2
    center : bool, default True
        whether the mean over inputs is removed
    dtype : Any, default None
        precision to sum in; None: float64

    Returns
    -------
    Any
        tensor without axes, with its gradient

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> import torch
    >>> rows = torch.tensor(phi, requires_grad=True)
    >>> loss = sm.differentiable_dimension(rows)
    >>> loss.backward()
    >>> print(round(loss.item(), 1), tuple(rows.grad.shape))
    20.1 (100, 200)
    """

def dimension_sweep(phi: ArrayLike, shares: Sequence[float] = ..., *, ratio: Callable[..., Any] | None = ..., center: bool = ..., n_draws: int = ..., random_state: int | np.random.Generator | None = ...) -> Sweep:
    """The dimension of random submatrices: does it depend on how much was seen?

    Parameters
    ----------
    phi : ArrayLike
        matrix (P, Q) or trials (T, P, Q), NaN where missing
    shares : Sequence[float], default (0.1, 0.2, 0.4, 0.7)
        of the rows and columns
    ratio : Callable[..., Any] | None, default None
        function from a (sub)matrix to its dimension; None: all cycles
    center : bool, default False
        remove the mean over inputs of each feature
    n_draws : int, default 50
        submatrices of each size
    random_state : int | np.random.Generator | None, default None
        None, an int or a numpy Generator

    Returns
    -------
    Sweep
        a `Sweep`

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> sweep = sm.dimension_sweep(phi, (0.5,), n_draws=5, random_state=1)
    >>> sweep.shapes
    [(50, 100)]
    """

def effective_dimension(moments: ArrayLike | Estimate, ridge: float, *, level: float = ..., upper: float | None = ..., n_grid: int = ...) -> Bounds:
    """Bounds on tr T (T + ridge)^-1 over all spectra that fit the moments.

    Parameters
    ----------
    moments : ArrayLike | Estimate
        m(1), ..., m(k) as an array, or an estimate with .values and .stderr
    ridge : float
        regularisation, any positive number
    level : float, default 0.95
        probability that all moments lie in their intervals at once
    upper : float | None, default None
        upper bound on the eigenvalues; None: from `operator_norm`
    n_grid : int, default 300
        number of points of each of the two grids

    Returns
    -------
    Bounds
        (low, high), a named tuple

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> bounds = sm.effective_dimension(sm.estimate(phi, 3), ridge=0.1)
    """

def eigenvalue_bounds(moments: ArrayLike | Estimate, count: int, *, level: float = ..., upper: float | None = ..., n_grid: int = ..., n_steps: int = ...) -> tuple[Floats, Floats]:
    """Smallest and largest i-th eigenvalue over all spectra that fit the moments.

    Parameters
    ----------
    moments : ArrayLike | Estimate
        m(1), ..., m(k) as an array, or an estimate with .values and .stderr
    count : int
        highest rank
    level : float, default 0.95
        probability that all moments lie in their intervals at once
    upper : float | None, default None
        upper bound on the eigenvalues; None: from `operator_norm`
    n_grid : int, default 100
        number of points of each of the two grids
    n_steps : int, default 40
        number of thresholds t

    Returns
    -------
    tuple[Floats, Floats]
        (low, high), arrays over the ranks 1..count

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> low, high = sm.eigenvalue_bounds(sm.Linear(20, scale=0.05).moments(4), 3)
    >>> bool((low <= 0.05).all() and (high >= 0.05).all())
    True
    """

def estimate(phi: ArrayLike, n_max: int = ..., *, method: Literal["auto", "all_cycles", "increasing", "blocks", "sketched", "naive", "kv_row", "kv_col", "both", "row", "col"] = ..., center: bool = ..., population: tuple[int | None, int | None] | None = ..., row_weights: ArrayLike | None = ..., column_weights: ArrayLike | None = ..., groups: ArrayLike | None = ..., column_groups: ArrayLike | None = ..., trials: bool = ..., n_permutations: int | None = ..., stderr: bool = ..., random_state: int | np.random.Generator | None = ..., n_jobs: int | None = ..., progress: bool = ...) -> Estimate:
    """Spectral moments of the operator behind a matrix, with standard errors.

    Parameters
    ----------
    phi : ArrayLike
        matrix (P, Q) or T trials of it (T, P, Q), NaN where missing: array-like,
        memory map, h5py or Zarr array, Dask array, torch tensor
    n_max : int, default 6
        highest order, at most min(P, Q)
    method : str, default 'auto'
        "auto", "all_cycles", "increasing", "blocks", "sketched", and, biased,
        "naive", "kv_row", "kv_col"
    center : bool, default False
        True: remove the mean over inputs, without bias, for covariances
    population : tuple[int | None, int | None] | None, default None
        (inputs, features): sizes of finite populations; None: infinite
    row_weights : ArrayLike | None, default None
        a weight for each input, fixed in advance
    column_weights : ArrayLike | None, default None
        a weight for each feature
    groups : ArrayLike | None, default None
        a label for each input; inputs of one group never meet in a cycle
    column_groups : ArrayLike | None, default None
        a label for each feature, likewise
    trials : bool, default True
        False: refuse three axes instead of taking them as trials
    n_permutations : int | None, default None
        random orders or pairings to average over; None: as many as pay; 0: rows and
        columns in the order given
    stderr : bool, default True
        whether to compute standard errors
    random_state : int | np.random.Generator | None, default None
        None, an int or a numpy Generator
    n_jobs : int | None, default None
        number of threads of the inner loop, None for all cores
    progress : bool, default False
        show a tqdm progress bar

    Returns
    -------
    Estimate
        an `Estimate`

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> est = sm.estimate(phi, 4)
    >>> print(est.dimension())  # the truth is 20
    20.03 +- 1.1
    >>> est = sm.estimate(phi, 2, center=True, population=(None, 200))  # these features
    """

def feasible(est: Estimate, *, upper: float | None = ..., n_grid: int = ..., random_state: int | np.random.Generator = ...) -> Spectrum:
    """The moments nearest to an estimate that some spectrum has, smoothed.

    Parameters
    ----------
    est : Estimate
        an estimate with .values, .stderr and .covariance
    upper : float | None, default None
        upper end of the eigenvalues; None: from the data, `upper_end`
    n_grid : int, default 150
        number of points of each of the two grids
    random_state : int | np.random.Generator, default 0
        None, an int or a numpy Generator, for the copies

    Returns
    -------
    Spectrum
        a `Spectrum`

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> spectrum = sm.feasible(sm.estimate(phi, 4))
    >>> bool((spectrum.values > 0).all())
    True
    """

def first_moment_powers(phi: ArrayLike, n_max: int, *, n_permutations: int = ..., random_state: int | np.random.Generator | None = ...) -> Floats:
    """Powers of the first moment from entries that share no row and no column.

    Parameters
    ----------
    phi : ArrayLike
        measurement matrix, shape (P, Q)
    n_max : int
        highest order, at most min(P, Q)
    n_permutations : int, default 0
        average over so many orders of rows and columns; 0: as given
    random_state : int | np.random.Generator | None, default None
        None, an int or a numpy Generator, for the permutations

    Returns
    -------
    Floats
        array whose entry n - 1 estimates m(1)^n without bias

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> sm.first_moment_powers(phi, 2).round(2)
    array([1.  , 0.99])
    """

def from_anndata(data: Any, layer: str | None = ...) -> npt.NDArray[Any]:
    """The matrix of an AnnData, cells by genes.

    Parameters
    ----------
    data : Any
        an `anndata.AnnData`
    layer : str | None, default None
        name of a layer; None: the matrix X

    Returns
    -------
    npt.NDArray[Any]
        array (cells, genes)

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> import anndata
    >>> sm.from_anndata(anndata.AnnData(phi)).shape
    (100, 200)
    """

def from_xarray(data: Any, dims: Sequence[str]) -> Any:
    """A matrix or trials from an xarray, by the names of its dimensions.

    Parameters
    ----------
    data : Any
        an `xarray.DataArray`
    dims : Sequence[str]
        names of the axes: (inputs, features) or (trials, inputs, features)

    Returns
    -------
    Any
        its values in that order, in memory or as a Dask array, as `data` holds them

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> import xarray
    >>> rates = xarray.DataArray(phi.T, dims=("neuron", "stimulus"))
    >>> sm.from_xarray(rates, ("stimulus", "neuron")).shape
    (100, 200)
    """

def increasing(phi: ArrayLike, n_max: int, *, n_permutations: int = ..., random_state: int | np.random.Generator | None = ..., n_jobs: int | None = ..., progress: bool = ...) -> Floats:
    """Unbiased moments from cycles with increasing rows and columns, as in the paper.

    Parameters
    ----------
    phi : ArrayLike
        matrix (P, Q) or trials (T, P, Q), NaN where missing
    n_max : int
        highest order, at most min(P, Q)
    n_permutations : int, default 0
        average over so many random orders of rows and columns; 0: as they are,
        which assumes that their order says nothing about their values
    random_state : int | np.random.Generator | None, default None
        None, an int or a numpy Generator, for the permutations
    n_jobs : int | None, default None
        number of threads, None for all cores; the result does not depend on it
    progress : bool, default False
        show a tqdm progress bar

    Returns
    -------
    Floats
        array whose entry n - 1 estimates m(n)

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> sm.increasing(phi, 2).round(3)  # the truth is 1, 0.05
    array([0.998, 0.049])
    """

def kong_valiant(phi: ArrayLike, n_max: int, *, sampled: Literal["rows", "columns"] = ...) -> Floats:
    """Unbiased moments if one side is sampled and the other complete.

    Parameters
    ----------
    phi : ArrayLike
        matrix (P, Q) or trials (T, P, Q), NaN where missing
    n_max : int
        highest order, at most min(P, Q)
    sampled : str, default 'rows'
        the sampled side, "rows" (KV-row) or "columns" (KV-col)

    Returns
    -------
    Floats
        array whose entry n - 1 estimates m(n)

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> sm.kong_valiant(phi, 2, sampled="rows").round(3)  # the truth is 1, 0.05
    array([0.998, 0.055])
    """

def load_matrix(path: str | os.PathLike[str] | IO[bytes], key: str | None = ..., *, header: bool | None = ..., index: bool | None = ...) -> npt.NDArray[Any]:
    """The array in a file, or an error that says why there is none.

    Parameters
    ----------
    path : str | os.PathLike[str] | IO[bytes]
        file name with one of the endings in the table; or an open binary file, such
        as sys.stdin.buffer, with the bytes of a .npy file or the text of a table
    key : str | None, default None
        name of the array in a file that may hold several
    header : bool | None, default None
        whether the first line of a text table is a header; None to find out
    index : bool | None, default None
        whether to leave out its first column; None: refuse what looks like one

    Returns
    -------
    npt.NDArray[Any]
        array of numbers; mapped for .npy

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> np.save("phi.npy", phi)
    >>> sm.load_matrix("phi.npy").shape
    (100, 200)
    """

def naive(phi: ArrayLike, n_max: int) -> Floats:
    """Moments of the sample covariance: biased upwards, but familiar.

    Parameters
    ----------
    phi : ArrayLike
        matrix (P, Q) or trials (T, P, Q), NaN where missing
    n_max : int
        highest order, at most min(P, Q)

    Returns
    -------
    Floats
        array whose entry n - 1 is the naive estimate of m(n)

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> sm.naive(phi, 2).round(3)  # the truth is 1, 0.05
    array([0.998, 0.065])
    """

def operator_norm(moments: ArrayLike | Estimate, *, level: float = ...) -> Bounds:
    """Bounds on the largest eigenvalue, from roots and ratios of moments.

    Parameters
    ----------
    moments : ArrayLike | Estimate
        m(1), ..., m(k) as an array, or an estimate with .values and .stderr
    level : float, default 0.95
        probability that all moments lie in their intervals at once

    Returns
    -------
    Bounds
        (low, high), a named tuple

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> bounds = sm.operator_norm(sm.estimate(phi, 3))
    """

def participation_ratio(data: ArrayLike | Estimate, *, center: bool = ..., random_state: int | np.random.Generator | None = ..., **options: Any) -> WithError:
    """Dimension m(1)^2 / m(2), the bias of the ratio removed by the jackknife.

    Parameters
    ----------
    data : ArrayLike | Estimate
        matrix (P, Q), trials (T, P, Q), NaN where missing; or moments, or an
        estimate
    center : bool, default False
        remove the mean over inputs of each feature; not for moments
    random_state : int | np.random.Generator | None, default None
        None, an int or a numpy Generator, where views are drawn
    **options : Any
        others of `estimate`, as population, groups, row_weights; not for moments

    Returns
    -------
    WithError
        (value, stderr), a named tuple; NaN if the estimate of m(2) is not positive

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> print(sm.participation_ratio(phi))
    20.03 +- 1.1
    """

def plot_dimensions(est: Estimate, ax: Axes | None = ..., *, n_max: int | None = ..., **style: Any) -> Axes:
    """Renyi dimensions of order 2, 3, ... with their standard errors.

    Parameters
    ----------
    est : Estimate
        an estimate with .values, .stderr and .covariance
    ax : Axes | None, default None
        matplotlib axes; None makes new ones
    n_max : int | None, default None
        highest order; None: the last usable one
    **style : Any
        properties of the points, for instance label and color

    Returns
    -------
    Axes
        the axes

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> ax = sm.plot_dimensions(sm.estimate(phi, 4))
    """

def power_law(est: Estimate, orders: Sequence[int] | None = ..., *, law: str = ..., rank: int | None = ...) -> LawFit:
    """Exponent and scale of a power law with these moments, with errors and a test.

    Parameters
    ----------
    est : Estimate
        an estimate with .values, .stderr and .covariance
    orders : Sequence[int] | None, default None
        orders to fit, each at least 2; None: 2 to the last usable, at most 4
    law : str, default 'power'
        "power", "exponential" or "broken"
    rank : int | None, default None
        number of eigenvalues of a power law; None: infinite

    Returns
    -------
    LawFit
        a `LawFit`

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> many = sm.PowerLaw(1.0).sample(150, 300, random_state=1)
    >>> fit = sm.power_law(sm.estimate(many, 5, random_state=1))
    >>> abs(fit.exponent - 1) < 0.2
    True
    """

def record(model: Any, layer: Any, inputs: ArrayLike, *, batch_size: int = ..., normalize: bool = ..., positions: Any = ..., feature_axis: Any = ..., random_state: int | np.random.Generator | None = ...) -> Activations:
    """Activations of one layer as a measurement matrix that knows its groups.

    Parameters
    ----------
    model : Any
        any torch module
    layer : Any
        name of one of its modules, as in model.named_modules(), or the module
    inputs : ArrayLike
        tensor or array, shape (P, ...): what the model takes
    batch_size : int, default 256
        inputs in one pass
    normalize : bool, default False
        divide by the root mean square of all entries
    positions : Any, default None
        what further axes are: "features", "inputs", "sample" or "mean"
    feature_axis : Any, default None
        axis of the features if there are positions; None: as the module
    random_state : int | np.random.Generator | None, default None
        for positions="sample": None, an int or a numpy Generator

    Returns
    -------
    Activations
        `Activations`, float64 (P, Q), a row for each input; (P * positions, Q) for
        "inputs"

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU())
    >>> sm.record(model, "1", torch.randn(40, 8)).shape
    (40, 16)
    """

def recover_eigenvalues(moments: ArrayLike | Estimate, count: int | None = ..., *, upper: float | None = ..., n_grid: int = ..., weights: ArrayLike | None = ...) -> Floats:
    """Eigenvalues from moments: of `feasible`, or by the linear program if `upper` is given.

    Parameters
    ----------
    moments : ArrayLike | Estimate
        m(1), ..., m(k) as an array, or an estimate with .values and .stderr
    count : int | None, default None
        number d of eigenvalues; None: as many as the measure holds
    upper : float | None, default None
        upper bound b: the linear program; None: the feasible measure
    n_grid : int, default 500
        number of grid points on [0, upper], of the linear program
    weights : ArrayLike | None, default None
        its c_1, ..., c_k; None: 1 / stderr, or upper^-n if there is none

    Returns
    -------
    Floats
        array of eigenvalues, in decreasing order

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> sm.recover_eigenvalues(sm.estimate(phi, 4)).size > 1
    True
    """

def renyi_dimension(moments: ArrayLike | Estimate, order: int = ...) -> WithError:
    """Exponential of the Renyi entropy of the normalised spectrum.

    Parameters
    ----------
    moments : ArrayLike | Estimate
        m(1), ..., m(k) as an array, or an estimate with .values and .stderr
    order : int, default 2
        order n of the entropy, at least 2; 2 is the participation ratio

    Returns
    -------
    WithError
        (value, stderr), a named tuple; stderr is NaN if the moments have none

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> round(sm.renyi_dimension(sm.Linear(20).moments(3), order=3).value, 6)
    20.0
    """

def row_batches(path: str | os.PathLike[str] | IO[bytes], key: str | None = ..., *, header: bool | None = ..., index: bool | None = ..., size: int | None = ...) -> Iterator[npt.NDArray[Any]]:
    """The rows of a file, a batch at a time, in the memory of one batch.

    Parameters
    ----------
    path : str | os.PathLike[str] | IO[bytes]
        as for `load_matrix`
    key : str | None, default None
        name of the array in a file that may hold several
    header : bool | None, default None
        whether the first line of a text table is a header; None to find out
    index : bool | None, default None
        whether to leave out its first column; None: refuse what looks like one
    size : int | None, default None
        rows in a batch; None: about a megabyte of them

    Returns
    -------
    Iterator[npt.NDArray[Any]]
        iterator of arrays (rows, Q) or, of trials, (T, rows, Q)

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> np.save("phi.npy", phi)
    >>> [rows.shape for rows in sm.row_batches("phi.npy", size=60)]
    [(60, 200), (40, 200)]
    """

def sketched(phi: ArrayLike, n_max: int, *, n_probes: int = ..., rank: int = ..., n_permutations: int = ..., random_state: int | np.random.Generator | None = ...) -> Floats:
    """Unbiased moments at a cost linear in the matrix, from random probes of its cycles.

    Parameters
    ----------
    phi : ArrayLike
        matrix (P, Q) or trials (T, P, Q): array, memory map, h5py, Zarr or Dask
        array
    n_max : int
        highest order, at most min(P, Q)
    n_probes : int, default 64
        random probes in each round, at least 2
    rank : int, default 64
        leading directions that are treated exactly
    n_permutations : int, default 1
        number of rounds, each in another order with other probes
    random_state : int | np.random.Generator | None, default None
        None, an int or a numpy Generator

    Returns
    -------
    Floats
        array whose entry n - 1 estimates m(n)

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> sm.sketched(phi, 2, random_state=1).shape
    (2,)
    """

def spectral_bounds(moments: ArrayLike | Estimate, function: Callable[..., Any], *, level: float = ..., upper: float | None = ..., rank: int | None = ..., n_grid: int = ...) -> Bounds:
    """Bounds on the sum of `function` over the eigenvalues, over all spectra that fit.

    Parameters
    ----------
    moments : ArrayLike | Estimate
        m(1), ..., m(k) as an array, or an estimate with .values and .stderr
    function : Callable[..., Any]
        takes an array of eigenvalues to an array; zero at zero
    level : float, default 0.95
        probability that all moments lie in their intervals at once
    upper : float | None, default None
        upper bound on the eigenvalues; None: from `operator_norm`
    rank : int | None, default None
        most eigenvalues that are not zero; None: any number
    n_grid : int, default 200
        number of points of each of the two grids

    Returns
    -------
    Bounds
        (low, high), a named tuple

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> bounds = sm.spectral_bounds(sm.estimate(phi, 3), lambda s: s / (s + 0.1))
    """

def subsample_check(phi: ArrayLike, n_max: int = ..., *, shapes: Any = ..., n_draws: int = ..., center: bool = ..., estimators: Any = ..., random_state: int | np.random.Generator | None = ...) -> SubsampleCheck:
    """Does the mean over submatrices equal the whole? For an unbiased estimate it does.

    Parameters
    ----------
    phi : ArrayLike
        matrix (P, Q) or trials (T, P, Q), of which two random halves are used
    n_max : int, default 2
        highest order, at most 5, or 4 if centred
    shapes : Any, default None
        list of (rows, columns); None: 10, 20, 40 and 70 percent of both
    n_draws : int, default 100
        random submatrices of each size; None: all there are
    center : bool, default False
        remove the mean over inputs of each feature
    estimators : Any, default None
        dict, name: function from a part, (p, q) or two halves (2, p, q), to an
        array over orders; None: all cycles and, from the mean of the trials, naive
    random_state : int | np.random.Generator | None, default None
        None, an int or a numpy Generator

    Returns
    -------
    SubsampleCheck
        a `SubsampleCheck`: print it for the table, `.plot()` for the figure

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    >>> check = sm.subsample_check(phi, shapes=[(30, 60)], n_draws=50, random_state=1)
    >>> mean, error = check.ratios("all_cycles")  # one, if the size is no matter
    >>> bool((abs(mean - 1) < 5 * error).all())
    True
    """

def variance_bound(n: int, P: int, Q: int, cycle_variance: float) -> float:
    """Bound on the variance of the estimate: n^2 (1/P + 1/Q) times that of one cycle.

    Parameters
    ----------
    n : int
        order
    P : int
        number of rows
    Q : int
        number of columns
    cycle_variance : float
        V_n, the variance of one cycle of order n

    Returns
    -------
    float
        upper bound on the variance of the estimate of m(n)

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> round(sm.variance_bound(2, 100, 200, 1.0), 6)
    0.06
    """

def watch(model: Any, layers: Any, *, n_max: int = ..., center: bool = ..., positions: Any = ..., feature_axis: Any = ..., units: int = ..., inputs: int = ..., patches: int = ..., select: Any = ..., random_state: int | np.random.Generator | None = ...) -> Watch:
    """Watch layers while a network runs or learns, by a random sample of bounded size.

    Parameters
    ----------
    model : Any
        any torch module
    layers : Any
        names of its modules, as in model.named_modules(), or the modules; or one
    n_max : int, default 3
        highest order
    center : bool, default True
        whether the mean over inputs is removed
    positions : Any, default 'sample'
        what further axes are: "sample", "inputs", "features" or "mean"
    feature_axis : Any, default None
        axis of the features if there are positions; None: as the module
    units : int, default 128
        number of units to keep of each layer, at random
    inputs : int, default 1024
        number of rows to keep of each layer, at random; memory holds twice that
    patches : int, default 4
        positions of an input that are kept for positions="inputs"
    select : Any, default None
        function: output of a layer -> its tensor; None: the first tensor in it
    random_state : int | np.random.Generator | None, default None
        None, an int or a numpy Generator; torch's numbers are untouched

    Returns
    -------
    Watch
        `Watch`: open it by `with`, run the model, ask for estimates, dimension,
        alignments

    Examples
    --------
    >>> import numpy as np, spectral_moments as sm
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU())
    >>> with sm.watch(model, ["0", "1"], n_max=2, random_state=1) as watched:
    ...     _ = model(torch.randn(64, 8))
    >>> table = watched.dimension()
    """
