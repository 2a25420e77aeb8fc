"""What no reader of the chapter on the recursion needs to see."""

from fractions import Fraction

import numpy as np
from conftest import normal
from hypothesis import given, settings
from hypothesis import strategies as st

from spectral_moments.teaching.cycles import mean_over_increasing
from spectral_moments.teaching.recursion import algorithm_1, cumulative, streaming

# ------------------------------------------------------------------ the ladder


@settings(max_examples=30, deadline=None)
@given(
    P=st.integers(1, 7),
    Q=st.integers(1, 7),
    seed=st.integers(0, 1000),
    rung=st.sampled_from([algorithm_1, cumulative, streaming]),
    data=st.data(),
)
def test_rungs_and_direct_sum(P, Q, seed, rung, data):
    n_max = data.draw(st.integers(1, min(P, Q, 4)))
    phi = abs(normal((P, Q), seed))
    exact = np.vectorize(Fraction)(phi)
    expected = [float(mean_over_increasing(exact, n)) for n in range(1, n_max + 1)]
    np.testing.assert_allclose(rung(phi, n_max), expected, rtol=1e-13)


@settings(max_examples=20, deadline=None)
@given(
    P=st.integers(1, 30), Q=st.integers(1, 30), seed=st.integers(0, 1000), data=st.data()
)
def test_rungs_among_themselves(P, Q, seed, data):
    n_max = data.draw(st.integers(1, min(P, Q, 9)))
    phi = normal((P, Q), seed)
    value, bound = streaming(phi, n_max), streaming(abs(phi), n_max)
    for other in (
        cumulative(phi, n_max),
        streaming(phi[::-1, ::-1].T, n_max),
        streaming(-1.7 * phi, n_max) / 1.7 ** (2 * np.arange(1, n_max + 1)),
    ):
        assert (abs(other - value) <= 1e-12 * bound).all()
