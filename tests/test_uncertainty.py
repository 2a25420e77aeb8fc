"""What no reader needs to see of the chapter on uncertainty."""

import itertools
import warnings
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spectral_moments.cycles import cycle_product, mean_over_disjoint
from spectral_moments.operators import Discrete, Linear
from spectral_moments.recursion import increasing
from spectral_moments.uncertainty import (
    _wide_cyclic_sums,
    chebyshev_radius,
    column_influences,
    cycle_variance,
    cyclic_sums,
    doubts,
    feasibility,
    interval,
    meeting_probability,
    moment_covariance,
    moment_ratio,
    moment_roots,
    row_influences,
    standard_errors,
    usable,
    variance_bound,
)


def direct(phi, n):
    """The definition of the row influences, term by term."""
    P, Q = phi.shape
    columns = list(itertools.combinations(range(Q), n))
    return [
        np.mean(
            [
                cycle_product(phi, (i, *others), a)
                for others in itertools.combinations(
                    [(i + s) % P for s in range(1, P)], n - 1
                )
                for a in columns
            ]
        )
        for i in range(P)
    ]


def both(phi, n_max, **options):
    return row_influences(phi, n_max, **options), column_influences(phi, n_max, **options)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (2, 7), (5, 3), (6, 6), (9, 4), (4, 9)])
def test_direct_sum(shape):
    phi = np.random.default_rng(1).standard_normal(shape)
    n_max = min(shape)
    rows, columns = both(phi, n_max)
    for n in range(1, min(n_max, 4) + 1):
        np.testing.assert_allclose(rows[n - 1], direct(phi, n), rtol=1e-9)
        turned = direct(phi[::-1, ::-1].T, n)[::-1]
        np.testing.assert_allclose(columns[n - 1], turned, rtol=1e-9)


@pytest.mark.parametrize("P", [15, 16, 17, 31, 32, 33, 48, 49, 50])
def test_blocks_of_every_length(P):
    """Start rows that fill their last block or tile, or do not."""
    phi = np.random.default_rng(P).standard_normal((P, 21))
    for n_max in (2, 5):
        fast, wide = cyclic_sums(phi, n_max), np.ldexp(*_wide_cyclic_sums(phi, n_max))
        scale = cyclic_sums(abs(phi), n_max)
        assert (abs(fast - wide) <= 1e-13 * scale).all()


@settings(max_examples=40, deadline=None)
@given(
    arrays(
        float,
        st.tuples(st.integers(2, 20), st.integers(2, 20)),
        elements=st.floats(-4, 4, allow_subnormal=False).map(lambda x: round(x, 3)),
    ),
    st.integers(1, 5),
)
def test_rows_and_columns_have_one_mean(phi, n_max):
    n_max = min(n_max, *phi.shape)
    rows, columns = both(phi, n_max)
    size = row_influences(abs(phi), n_max).mean(axis=1)
    assert (abs(rows.mean(axis=1) - columns.mean(axis=1)) <= 1e-12 * size).all()
    gap = abs(rows.mean(axis=1)[:2] - increasing(phi, n_max)[:2])
    assert (gap <= 1e-12 * size[:2]).all()


def test_unbiased_exactly():
    population = Discrete([[1.0, 2.0], [0.5, -1.0]], feature_probs=[0.3, 0.7])
    for f, count in ((row_influences, 4), (column_influences, 3)):
        mean = population.expectation(lambda phi, f=f: f(phi, 3, n_jobs=1), 4, 3)
        expected = np.outer(population.moments(3), np.ones(count))
        np.testing.assert_allclose(mean, expected, rtol=1e-11)


def test_conditional_mean_is_the_diagonal_kernel():
    """Given its input, a row's influence has the mean k_n(x, x)."""
    population = Discrete([[1.0, 2.0, -1.0], [0.5, -1.0, 3.0]])
    rho_w, rho_x = population.feature_probs, population.input_probs
    k = (population.table * rho_w) @ population.table.T
    k_n = k.copy()
    for n in (2, 3):
        k_n = k_n @ (rho_x[:, None] * k)
        for x in (0, 1):

            def first(phi, n=n, x=x):
                hit = (phi[0] == population.table[x][np.newaxis]).all()
                return hit, row_influences(phi, n, n_jobs=1)[n - 1, 0]

            total = 0.0
            for columns in itertools.product(range(3), repeat=3):
                for others in itertools.product((0, 1), repeat=2):
                    phi = population.table[np.ix_([x, *others], columns)]
                    total += first(phi)[1] / (27 * 4)
            np.testing.assert_allclose(total, k_n[x, x], rtol=1e-11)


def test_threads_do_not_matter():
    phi = np.random.default_rng(2).standard_normal((70, 45))
    for one, many in zip(both(phi, 6, n_jobs=1), both(phi, 6, n_jobs=4), strict=True):
        np.testing.assert_array_equal(one, many)


def test_permutations():
    phi = np.random.default_rng(3).standard_normal((7, 9))
    first = row_influences(phi, 4, n_permutations=3, random_state=5)
    np.testing.assert_array_equal(
        first, row_influences(phi, 4, n_permutations=3, random_state=5, n_jobs=1)
    )
    np.testing.assert_allclose(first[:2], row_influences(phi, 2), rtol=1e-11)
    assert abs(first[2] - row_influences(phi, 3)[2]).max() > 1e-3
    # averaged over many orders, the mean over all disjoint cycles through a row
    small, n = phi[:4, :4], 3
    many = row_influences(small, n, n_permutations=800, random_state=1)[n - 1]
    rest = [mean_over_disjoint(np.delete(small, i, axis=0), n) for i in range(4)]
    through = [(mean_over_disjoint(small, n) - (1 - n / 4) * r) * 4 / n for r in rest]
    np.testing.assert_allclose(many, through, atol=0.3)


def test_shape_of_the_input():
    phi = np.random.default_rng(4).integers(-3, 4, (6, 8))
    expected = row_influences(phi.astype(float), 3)
    fortran, frozen = np.asfortranarray(phi, dtype=float), phi.astype(float)
    frozen.flags.writeable = False
    for given_as in (phi, phi.tolist(), fortran, frozen, phi[None], phi.astype("f4")):
        np.testing.assert_array_equal(row_influences(given_as, 3), expected)
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(row_influences(torch.tensor(phi), 3), expected)


@pytest.mark.parametrize("scale", [1e-60, 1e-20, 1e20, 1e60])
def test_scaling(scale):
    phi = np.random.default_rng(5).standard_normal((6, 7))
    plain, scaled = both(phi, 2), both(scale * phi, 2)
    for a, b in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(b, a * scale ** np.array([[2.0], [4.0]]), rtol=1e-10)
    ratio = standard_errors(*scaled) / standard_errors(*plain)
    np.testing.assert_allclose(ratio, scale ** np.array([2.0, 4.0]), rtol=1e-10)


def test_wide_range_of_rows():
    """Rows that differ by hundreds of orders of magnitude take the slow way and agree."""
    phi = np.random.default_rng(6).standard_normal((4, 5))
    phi = phi * (10.0 ** np.array([0, -150, -100, 50]))[:, None]
    found = row_influences(phi, 2)
    np.testing.assert_allclose(found[1], direct(phi, 2), rtol=1e-12)
    assert (found[1] != 0).all()


def test_overflow_is_infinite_and_not_usable():
    phi = np.full((5, 6), 1e60)
    phi[0] *= 2
    errors = standard_errors(*both(phi, 4))
    assert np.isfinite(errors[:2]).all() and np.isinf(errors[2:]).all()
    assert not usable(increasing(phi, 4), errors)[2:].any()
    covariance = moment_covariance(*both(phi, 4))
    assert np.isinf(covariance[3, 3]) and np.isnan(covariance[0, 3])


def test_degenerate_matrices():
    for phi, value in ((np.zeros((4, 5)), 0.0), (np.full((4, 5), 3.0), None)):
        rows, columns = both(phi, 3)
        values = 9.0 ** np.arange(1, 4) if value is None else np.zeros(3)
        np.testing.assert_allclose(rows, np.outer(values, np.ones(4)), rtol=1e-13)
        np.testing.assert_allclose(standard_errors(rows, columns), 0, atol=1e-10)
    dead = np.random.default_rng(7).standard_normal((20, 25))
    dead[3], dead[:, 4], dead[5, 6] = 0, 0, 1e-40  # zero influence, tiny entry: still fast
    rows, columns = both(dead, 6)
    assert (rows[:, 3] == 0).all() and (columns[:, 4] == 0).all()


def test_last_order_has_no_error_bar():
    phi = np.random.default_rng(8).standard_normal((4, 6))
    errors = standard_errors(*both(phi, 4))
    assert np.isfinite(errors[:3]).all() and np.isinf(errors[3])
    assert interval(increasing(phi, 4), errors)[0][3] == -np.inf
    assert "lower n_max" in doubts(increasing(phi, 4), errors)[-1]
    value, error = moment_ratio(
        abs(increasing(phi, 4)), moment_covariance(*both(phi, 4)), (1, 0, 0, 1)
    )
    assert np.isfinite(value) and np.isinf(error)


def test_jackknife_of_second_order():
    phi = np.random.default_rng(9).standard_normal((7, 6))
    P, Q = phi.shape
    rows = [increasing(np.delete(phi, i, axis=0), 2) for i in range(P)]
    columns = [increasing(np.delete(phi, a, axis=1), 2) for a in range(Q)]
    expected = (P - 1) * np.cov(rows, rowvar=False, ddof=0)
    expected += (Q - 1) * np.cov(columns, rowvar=False, ddof=0)
    covariance = moment_covariance(*both(phi, 2))
    np.testing.assert_allclose(covariance, expected, rtol=1e-10)
    np.testing.assert_allclose(standard_errors(*both(phi, 2)) ** 2, covariance.diagonal())


def test_conservative_over_every_sample():
    """The expected variance is at least that of the mean over all cycles."""
    population = Discrete([[1.0, -1.0], [0.5, 2.0]], input_probs=[0.7, 0.3])
    P, Q, n = 4, 4, 3
    cycles = {}

    def star(phi):
        key = phi.tobytes()
        if key not in cycles:
            cycles[key] = mean_over_disjoint(phi, n)
        return cycles[key]

    def estimated(phi):
        return standard_errors(*both(phi, n, n_jobs=1))[-1] ** 2

    variance = population.expectation(lambda phi: star(phi) ** 2, P, Q)
    variance -= population.moments(n)[-1] ** 2
    assert population.expectation(estimated, P, Q) >= variance


def test_leading_variance_of_the_linear_process():
    process, d, P, Q = Linear(4), 4, 150, 200
    found = [standard_errors(*both(process.sample(P, Q, seed), 3)) for seed in range(20)]
    expected = d * np.arange(1, 4) * np.sqrt(2 / d * (1 / P + 1 / Q))
    np.testing.assert_allclose(np.mean(found, axis=0), expected, rtol=0.1)


def test_integrability_lemma():
    rng = np.random.default_rng(10)
    for _ in range(20):
        process = Discrete(rng.standard_normal((3, 4)))
        absolute = Discrete(abs(process.table))
        bound = process.moments(1) ** np.arange(1, 7)
        assert (absolute.moments(6) <= bound * (1 + 1e-12)).all()


@given(st.integers(1, 12), st.integers(0, 500), st.integers(0, 500))
def test_meeting_probability(n, P, Q):
    P, Q = P + n, Q + n
    x = n**2 * (1 / P + 1 / Q)
    found = meeting_probability(n, P, Q)
    assert 0 < found <= min(1, x * (1 + 1e-12))
    assert found >= 1 - np.exp(-x) - 1e-12  # the direction that the paper has wrong
    if min(P, Q) < 2 * n:
        assert found == 1


def test_bound_and_radius():
    assert variance_bound(2, 10, 20, 3.0) == pytest.approx(4 * 0.15 * 3)
    np.testing.assert_allclose(chebyshev_radius([0.04, 1.0], 0.25), [0.4, 2.0])
    process = Discrete([[1.0, 2.0], [0.0, -1.0]])
    squares = process.expectation(lambda phi: increasing(phi**2, 2, n_jobs=1), 2, 2)
    np.testing.assert_allclose(squares, Discrete(process.table**2).moments(2), rtol=1e-12)
    phi = np.random.default_rng(11).standard_normal((6, 6))
    expected = increasing(phi**2, 3) - increasing(phi, 3) ** 2
    np.testing.assert_allclose(cycle_variance(phi, 3), expected)


POSITIVE = st.floats(1e-6, 1e6)


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), POSITIVE), min_size=1, max_size=8))
def test_intervals_hold_the_estimate(pairs):
    values, errors = np.array(pairs).T
    for scale in ("root", "symmetric"):
        low, high = interval(values, errors, scale=scale)
        wide_low, wide_high = interval(values, errors, level=0.99, scale=scale)
        assert (low <= values).all() and (values <= high).all()
        assert (wide_low <= low).all() and (high <= wide_high).all()
    low, high = interval(values, errors, scale="log")
    assert (np.isnan(low) == (values <= 0)).all()


def test_interval_scales_with_the_moments():
    values, errors = np.array([1.0, 0.5, 0.3, -0.1, 0.01]), np.full(5, 0.05)
    for scale in ("root", "log", "symmetric"):
        plain = np.array(interval(values, errors, scale=scale))
        scaled = np.array(interval(7 * values, 7 * errors, scale=scale))
        np.testing.assert_allclose(scaled, 7 * plain, rtol=1e-12)


def test_interval_extremes():
    low, high = interval([0.0, 0.0, 1.0, 0.5], [0.0, 1.0, np.inf, 0.0])
    assert (low[0], high[0]) == (0, 0) and (low[3], high[3]) == (0.5, 0.5)
    assert low[1] < 0 < high[1] and (low[2], high[2]) == (-np.inf, np.inf)
    nan_low, _ = interval([1.0, np.nan], [0.1, 0.1])
    assert np.isnan(nan_low[1])


def test_usable_and_doubts():
    values, errors = [1.0, 0.5, -0.3, 0.1, np.nan], [0.1, 0.5, 0.1, 0.2, 0.1]
    assert usable(values, errors).tolist() == [True, False, False, False, False]
    said = doubts(values, errors)
    assert [text[:4] for text in said] == ["m(2)", "m(3)", "m(4)", "m(5)"]
    assert doubts([1.0], [0.1]) == []


def test_feasibility():
    rng = np.random.default_rng(12)
    for _ in range(30):
        eigenvalues = rng.exponential(size=5)
        moments = (eigenvalues[:, None] ** np.arange(1, 8)).sum(axis=0)
        assert feasibility(moments) == []
    assert feasibility([1.0, 0.9, 0.1]) == ["m(2)^2 exceeds m(1) m(3)"]
    assert feasibility([1.0, 1.5]) == ["m(2)^(1/2) exceeds m(1)^(1/1)"]
    assert feasibility([1.0, -0.5, 0.2]) == ["m(2) = -0.5 is negative"]
    assert feasibility([]) == [] and feasibility([1.0, np.nan, 2.0]) == []


def test_ratio_by_finite_differences():
    phi = np.random.default_rng(13).standard_normal((30, 40)) + 1
    values, covariance = increasing(phi, 4), moment_covariance(*both(phi, 4))
    powers = np.array([2.0, -1.0, 0.5])
    value, error = moment_ratio(values, covariance, powers)
    assert value == pytest.approx(np.prod(values[:3] ** powers))
    gradient = []
    for n in range(3):
        up, down = values.copy(), values.copy()
        up[n], down[n] = 1.000001 * values[n], 0.999999 * values[n]
        change = np.prod(up[:3] ** powers) - np.prod(down[:3] ** powers)
        gradient.append(change / (up[n] - down[n]))
    expected = np.sqrt(np.array(gradient) @ covariance[:3, :3] @ gradient)
    assert error == pytest.approx(expected, rel=1e-6)


def test_negative_moments_warn():
    with pytest.warns(RuntimeWarning, match=r"m\(2\) not positive, so the ratio is NaN"):
        assert np.isnan(moment_ratio([1.0, -0.1], np.eye(2), (2, -1))).all()
    with pytest.warns(RuntimeWarning, match=r"m\(2\), m\(3\) not positive"):
        roots, errors = moment_roots([1.0, -0.1, 0.0], [0.1, 0.1, 0.1])
    assert np.isnan(roots[1:]).all() and np.isnan(errors[1:]).all()
    np.testing.assert_allclose([roots[0], errors[0]], [1, 0.1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moment_ratio([1.0, 0.5, -1.0], np.eye(3), (1, 1))  # an order that is not used


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: row_influences(np.ones((3, 4)), 4), "exceeds min"),
        (lambda: column_influences(np.ones((3, 4)), 0), "n_max = 0"),
        (lambda: row_influences([[1.0, np.nan]], 1), "NaN"),
        (lambda: row_influences(np.ones((3, 3)), 2, n_jobs=0), "n_jobs"),
        (lambda: row_influences(np.ones((3, 3)), 2, n_permutations=-1), "n_permutations"),
        (lambda: meeting_probability(3, 2, 9), "exceeds min"),
        (lambda: chebyshev_radius(1.0, 0), "delta"),
        (lambda: interval([1.0], [-0.1]), "negative"),
        (lambda: interval([[1.0]], [[0.1]]), "shape"),
        (lambda: interval([1.0], [0.1], level=1), "level"),
        (lambda: interval([1.0], [0.1], scale="cube"), "scale"),
        (lambda: usable([1.0, 2.0], [0.1]), "shape"),
        (lambda: moment_ratio([1.0], np.eye(2), [1]), "fit"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_numbers_of_cycles():
    """All-one matrices count the cycles."""
    sums = cyclic_sums(np.ones((18, 9)), 4)
    expected = [comb(17, n - 1) * comb(9, n) for n in range(1, 5)]
    np.testing.assert_array_equal(sums, np.outer(expected, np.ones(18)))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_influences_of_two_trials_by_direct_sum(n):
    "Rows are left with one trial and entered, and cycles closed, with the other."
    enter, leave = np.random.default_rng(8).standard_normal((2, 5, 6))

    def start_mean(i):
        others = itertools.combinations([(i + step) % 5 for step in range(1, 5)], n - 1)
        rows = [(i, *rest) for rest in others]
        columns = list(itertools.combinations(range(6), n))
        return np.mean(
            [
                prod(leave[a, k] * enter[b, k] for a, b, k in zip(r, r[1:] + r[:1], c))
                for r in rows
                for c in columns
            ]
        )

    found = row_influences(enter, 3, leave=leave)[n - 1]
    np.testing.assert_allclose(found, [start_mean(i) for i in range(5)], rtol=1e-10)
    columns = column_influences(enter, 3, leave=leave)[n - 1]
    np.testing.assert_allclose(columns.mean(), found.mean(), rtol=1e-10)


def test_influences_of_two_trials_in_any_range():
    enter, leave = np.random.default_rng(9).standard_normal((2, 4, 5))
    plain = cyclic_sums(enter, 3, leave=leave)
    wide = np.ldexp(*_wide_cyclic_sums(enter, 3, leave))
    np.testing.assert_allclose(wide, plain, rtol=1e-10)
    scaled = row_influences(1e60 * enter, 3, leave=1e60 * leave)
    small = row_influences(enter, 3, leave=leave)
    np.testing.assert_allclose(scaled[:2], small[:2] * [[1e120], [1e240]], rtol=1e-10)
    same = row_influences(enter, 3, leave=enter, n_permutations=2, random_state=1)
    alone = row_influences(enter, 3, n_permutations=2, random_state=1)
    np.testing.assert_allclose(same, alone, rtol=1e-12)
    with pytest.raises(ValueError, match="leave has shape"):
        row_influences(enter, 2, leave=leave[:3])
