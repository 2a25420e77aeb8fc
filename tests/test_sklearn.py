"""`estimate` in the form of scikit-learn."""

import inspect

import numpy as np
import pytest
from conftest import normal, python

import spectral_moments as sm

sklearn = pytest.importorskip("sklearn")


@pytest.mark.filterwarnings("ignore")  # scikit-learn's about its own checks
def test_check_estimator():
    from sklearn.utils.estimator_checks import check_estimator

    check_estimator(sm.sklearn.SpectralMoments(random_state=0))


def test_defaults_are_those_of_estimate():
    ours = inspect.signature(sm.sklearn.SpectralMoments).parameters
    theirs = inspect.signature(sm.estimate).parameters
    for name, parameter in ours.items():
        assert parameter.default == theirs[name].default, name


def test_the_same_as_estimate():
    phi = normal((30, 20))
    phi[3, 4] = np.nan
    options = dict(center=False, random_state=1)
    model = sm.sklearn.SpectralMoments(2, **options).fit(phi)
    expected = sm.estimate(phi, 2, **options)
    np.testing.assert_array_equal(model.moments_, expected.values)
    np.testing.assert_array_equal(model.stderr_, expected.stderr)
    found = model.dimension_, model.dimension_stderr_
    dimension = expected.dimension()
    np.testing.assert_array_equal(found, (dimension.value, dimension.stderr))
    layer = sm.sklearn.SpectralMoments(2, population="all").fit(phi).moments_
    np.testing.assert_array_equal(layer, sm.estimate(phi, 2, population=20).values)


def test_groups():
    phi, groups = normal((30, 20)), np.repeat(np.arange(10), 3)
    model = sm.sklearn.SpectralMoments().fit(phi, groups=groups)
    expected = sm.estimate(phi, 2, groups=groups)
    np.testing.assert_array_equal(model.moments_, expected.values)
    parts = sm.sklearn.SpectralMoments()
    for rows in (slice(0, 9), slice(9, 30)):  # three groups are not enough
        assert not hasattr(parts, "moments_")
        parts.partial_fit(phi[rows], groups=groups[rows])
    np.testing.assert_allclose(parts.moments_, expected.values, rtol=1e-9)


def test_partial_fit_adds_rows():
    phi = normal((40, 8), 1) + 3
    model = sm.sklearn.SpectralMoments()
    assert not hasattr(model.partial_fit(phi[:1]), "moments_")  # one row is not enough
    for rows in np.array_split(phi[1:], 5):
        model.partial_fit(rows)
    np.testing.assert_allclose(model.moments_, sm.estimate(phi, 2).values, rtol=1e-9)
    assert model.n_features_in_ == 8
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(phi[:, :5])
    again = model.fit(phi[:20]).partial_fit(phi[:20])  # fit forgets what came before
    np.testing.assert_allclose(again.moments_, sm.estimate(phi[:20], 2).values, rtol=1e-9)


def test_wrong_options_are_refused_by_fit():
    with pytest.raises(ValueError, match="population"):
        sm.sklearn.SpectralMoments(population=7).fit(normal((9, 8)))
    with pytest.raises(ValueError, match="minimum of 10 is required"):
        sm.sklearn.SpectralMoments(5, center=True).fit(normal((9, 8)))
    for wrong in ([2], np.inf, "2"):
        with pytest.raises(sm.ArgumentError, match="n_max must be a whole number"):
            sm.sklearn.SpectralMoments(wrong).fit(normal((9, 8)))


def test_without_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = None; import spectral_moments as sm\n"
        "print(sm.naive([[1.0]], 1))\n"
        "try: sm.sklearn\n"
        "except ImportError as error: print(error)"
    )
    text = python("-c", code).stdout
    assert text.startswith("[1.]") and "spectral_moments[sklearn]" in text
