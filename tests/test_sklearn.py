"""The twin of `estimate` in the form of scikit-learn, and adapters for other containers."""

import numpy as np
import pytest
from conftest import normal, python

import spectral_moments as sm

sklearn = pytest.importorskip("sklearn")
pytestmark = pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")


@pytest.mark.filterwarnings("ignore")  # scikit-learn's about its own checks
def test_check_estimator():
    from sklearn.utils.estimator_checks import check_estimator

    check_estimator(sm.sklearn.SpectralMoments(random_state=0))


def test_the_same_as_estimate():
    phi = normal((30, 20))
    phi[3, 4] = np.nan
    options = dict(center=True, method="all_cycles", random_state=1, n_permutations=3)
    model = sm.sklearn.SpectralMoments(2, **options).fit(phi)
    expected = sm.estimate(phi, 2, **options)
    np.testing.assert_array_equal(model.moments_, expected.values)
    np.testing.assert_array_equal(model.stderr_, expected.stderr)
    np.testing.assert_array_equal(model.covariance_, expected.covariance)
    found = model.dimension_, model.dimension_stderr_
    dimension = expected.dimension()
    np.testing.assert_array_equal(found, (dimension.value, dimension.stderr))
    layer = sm.sklearn.SpectralMoments(2, population=(None, 20)).fit(phi).moments_
    np.testing.assert_array_equal(layer, sm.estimate(phi, 2, population=(None, 20)).values)


def test_wrong_options_are_refused_by_fit():
    with pytest.raises(ValueError, match="method = 'best'"):
        sm.sklearn.SpectralMoments(method="best").fit(normal((9, 8)))
    with pytest.raises(ValueError, match="minimum of 10 is required"):
        sm.sklearn.SpectralMoments(5, center=True).fit(normal((9, 8)))


def test_without_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = None; import spectral_moments as sm\n"
        "print(sm.naive([[1.0]], 1))\n"
        "try: sm.sklearn\n"
        "except ImportError as error: print(error)"
    )
    said = python("-c", code).stdout
    assert said.startswith("[1.]") and "spectral_moments[sklearn]" in said


# --- adapters -----------------------------------------------------------------------------


def test_xarray_by_the_names_of_its_dimensions():
    xarray = pytest.importorskip("xarray")
    data = normal((3, 10, 8))
    named = xarray.DataArray(data, dims=("repeat", "stimulus", "neuron"))
    for order in (("repeat", "stimulus", "neuron"), ("neuron", "repeat", "stimulus")):
        found = sm.from_xarray(named.transpose(*order), ("repeat", "stimulus", "neuron"))
        np.testing.assert_array_equal(found, data)
    found = sm.from_xarray(named[0], ["neuron", "stimulus"])
    np.testing.assert_array_equal(found, data[0].T)
    lazy = sm.from_xarray(named.chunk(), ("repeat", "stimulus", "neuron"))
    assert type(lazy).__module__.startswith("dask")
    for dims, words in [
        (("stimulus", "neuron"), "must be all dimensions"),
        (("stimulus", "unit", "repeat"), "must be all dimensions"),
        ("stimulus", "two or three different names"),
        (("stimulus", "stimulus"), "two or three different names"),
    ]:
        with pytest.raises(ValueError, match=words):
            sm.from_xarray(named, dims)
    with pytest.raises(TypeError, match="xarray.DataArray"):
        sm.from_xarray(data, ("stimulus", "neuron"))


@pytest.mark.filterwarnings("ignore")  # anndata's about its future
def test_anndata(tmp_path):
    anndata = pytest.importorskip("anndata")
    sparse = pytest.importorskip("scipy.sparse")
    counts = np.random.default_rng(0).poisson(1.0, (20, 6)).astype(float)
    for matrix in (counts, sparse.csr_matrix(counts), sparse.csc_matrix(counts)):
        cells = anndata.AnnData(matrix)
        cells.layers["twice"] = 2 * matrix
        np.testing.assert_array_equal(sm.from_anndata(cells), counts)
        np.testing.assert_array_equal(sm.from_anndata(cells, layer="twice"), 2 * counts)
    with pytest.raises(ValueError, match="must be one of twice"):
        sm.from_anndata(cells, "raw")
    with pytest.raises(TypeError, match=r"anndata\.AnnData"):
        sm.from_anndata(counts)
    empty = anndata.AnnData(obs={"a": ["x", "y"]})
    with pytest.raises(ValueError, match="no matrix X"):
        sm.from_anndata(empty)


def test_frames():
    pandas = pytest.importorskip("pandas")
    frame = sm.estimate(normal((9, 8)), 3).to_frame()
    assert isinstance(frame, pandas.DataFrame) and list(frame.index) == [1, 2, 3]
    columns = ["value", "stderr", "low95", "high95", "method", "usable"]
    assert list(frame.columns) == columns
