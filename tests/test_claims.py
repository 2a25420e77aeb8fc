"""The page of claims: complete, linked, and its numbers those of the stored studies."""

import itertools
import json
import re

import numpy as np
import pytest
from conftest import RESULTS, ROOT

import spectral_moments as sm
from spectral_moments.comparison import read_study

PAGE = (ROOT / "nbs/claims.md").read_text()
ENTRIES = re.findall(r"(?m)^(?!:)(\S.*)\n: (.*)$", PAGE)
VERDICTS = ("Confirmed", "Corrected", "Open")


def entry(start):
    "The text under the one claim that holds these words."
    (text,) = [body for claim, body in ENTRIES if start in claim]
    return text


def moments(study, method, quantity="moment", **where):
    "Rows of a stored comparison, by order from 2 to 7."
    table = read_study(RESULTS / f"comparison_{study}.json")[1]
    return table.where(method=method, quantity=quantity, n=range(2, 8), **where)


def test_every_claim_has_a_verdict_and_a_link():
    assert PAGE.count("\n: ") == len(ENTRIES)
    for claim, body in ENTRIES:
        assert re.match(r"\*\*(Confirmed|Corrected|Open)\.\*\* ?", body), claim
        links = re.findall(r"\]\(([^)]+)\)", body)
        assert links, claim
        assert all((ROOT / "nbs" / link).exists() for link in links), claim


def test_count():
    counts = [sum(f"**{verdict}.**" in body for _, body in ENTRIES) for verdict in VERDICTS]
    confirmed, corrected, still_open = counts
    said = f"Of {sum(counts)} claims {confirmed} are confirmed, {corrected} corrected"
    assert f"{said} and {still_open} open." in PAGE


def test_main_setting():
    naive, row, col = (moments("main", m) for m in ("naive", "kv_row", "kv_col"))
    ratio = 1 + naive.bias / naive.truth
    text = entry("sensitive to the size")
    assert f"{ratio[0]:.1f} times" in text and f"{ratio[-1]:.0f} times" in text
    text = entry("both rows and columns are sampled")
    for t in (row, col):
        assert f"{1 + (t.bias / t.truth)[0]:.1f} (" in text
    cycles = moments("main", "increasing")
    spread = np.sqrt(cycles.variance) / cycles.truth
    text = entry("Excellent agreement")
    assert f"{spread[0]:.2f} at" in text and f"{spread[-1]:.1f} at" in text
    ratios = row.mse / cycles.mse
    assert (ratios < naive.mse / cycles.mse).all() and (ratios < col.mse / cycles.mse).all()
    assert f"{ratios.max():.0f} to {ratios.min():.0f} times" in entry(
        "smallest mean-squared"
    )


def test_appendix_and_roots():
    ratios = moments("small_dim4", "kv_row").mse / moments("small_dim4", "increasing").mse
    said = "{:.2f}, {:.3f} and {:.3f}".format(*ratios[3:])
    assert said in entry("across all configurations")
    root = moments("main", "increasing_10", "root").mse[-2:] * 1e5
    text = entry("remarkably small MSE")
    assert all(rf"${value:.1f} \times 10^{{-5}}$" in text for value in root)


def test_roots_against_moments():
    times = {}
    for quantity in ("moment", "root", "positive_root"):
        row, mine = (moments("main", m, quantity) for m in ("kv_row", "increasing_10"))
        times[quantity] = row.mse / mine.mse
    text = entry("more pronounced")
    m, r = times["moment"], times["positive_root"]
    assert f"{m.max():.0f} to {m.min():.0f} times that of increasing for moments" in text
    assert f"{r.max():.0f} to {r.min():.1f} times for roots" in text and (r < m).all()
    assert f"{times['root'][-1]:.2f} times at $n = 7$" in text
    root = moments("main", "increasing_10", "root")
    bias = -100 * root.bias / root.truth
    text = entry("the $n$-th root ... will be a biased")
    assert f"{bias[0]:.1f}% at $n = 2$" in text and f"{bias[-1]:.0f}% at $n = 7$" in text


@pytest.mark.parametrize(
    ("study", "claim", "method", "size"),
    [
        ("features", "even in the limit of large", "kv_col", "Q"),
        ("features", "On the other hand", "kv_row", "Q"),
        ("inputs", "Fix $Q$, vary $P$", "kv_col", "P"),
    ],
)
def test_one_side_at_a_time(study, claim, method, size):
    t = read_study(RESULTS / f"comparison_{study}.json")[1]
    t = t.where(method=method, quantity="moment", n=2, **{size: [75, 1200]}).sort(size)
    digits = 2 if "limit" in claim else 1
    for value in t.bias / t.truth:
        assert f"{value:.{digits}f} with" in entry(claim)


def test_noise():
    case = json.loads((RESULTS / "noise.json").read_text())["shapes"]["75 x 150"]
    ratio = case["rows"]["correlated, T = 1"]["increasing"]["mean"][1] / case["truth"][1]
    assert f"{ratio:.1f} times" in entry("With only two trials")


def test_eigenvalues():
    panels = json.loads((RESULTS / "spectrum.json").read_text())["panels"]
    error = {k: v["error"] for k, v in panels["linear 100 x 100"]["methods"].items()}
    program = error.get("increasing", error.get("ours"))
    assert program < error["kv"] and program < error["empirical"]
    assert 1.5 < program / error["constant"] < 2.5  # "twice as close"
    fourier = panels["Fourier 20 x 20"]
    assert fourier["relative_sd"][9] > 1e7


def test_feature_learning():
    stored = np.load(RESULTS / "feature_learning.npz")
    about = json.loads((RESULTS / "feature_learning.json").read_text())["fashion"]
    names = ("naive", "ours", "powers", "size")
    naive, ours, powers, size = (np.float64(stored[f"fashion {x}"][:, 1:]) for x in names)
    weight = size ** (2 * np.arange(1, 8))
    weight = weight / weight.mean(axis=0)
    spread = lambda m: (m.std(axis=0, ddof=1) / m.mean(axis=0))[:, 1:]
    pooled = lambda top: (weight * top).mean(axis=0) / (weight * powers).mean(axis=0)
    plain = spread(naive.mean(axis=0)) / spread(ours.mean(axis=0))
    end, early = spread(pooled(naive))[-1] / spread(pooled(ours))[-1], plain[5]
    assert about["epochs"][5] == 10 and (end > 1).all() and (early[1:] < 1).all()
    text = entry("diverge across the different network widths")
    assert f"Over {len(about['seeds'])} seeds" in text
    assert f"{end.min():.1f} to {end.max():.1f} times" in text
    assert f"{plain[-1].min():.1f} to {plain[-1].max():.1f} times" in text
    assert f"{1 / early[-1]:.1f} times as much" in text
    text = entry("smaller sizes ($N = 128$)")
    for top in (ours, naive):  # widths 128 and 1024 at the end of training
        apart = (pooled(top)[1, -1] / pooled(top)[-1, -1])[1:]
        assert f"{apart.min():.2f} to {apart.max():.2f} times" in text
    median = stored["fashion subsets"][:, -1, 2, 4] / stored["fashion whole ours"][:, -1]
    text = entry("A random 128 of 1024 neurons")
    for n, words in ((2, "of the layer's $m(2)$"), (7, "of its $m(7)$")):
        assert f"{median[:, n - 1].mean():.2f} {words}" in text


def test_transposition():
    recording = sm.RBF(3, kernel_cov=0.25).sample(200, 400, random_state=3)
    for phi in (recording, recording[:20, :40]):
        same = sm.increasing(phi[::-1, ::-1].T, 3)
        np.testing.assert_allclose(same, sm.increasing(phi, 3), rtol=1e-10)
    plain = sm.increasing(recording.T, 3) / sm.increasing(recording, 3)
    np.testing.assert_allclose(plain[:2], 1, rtol=1e-10)
    assert 0.005 < abs(plain[2] - 1) < 0.02  # "about one percent"
    corner = recording[:20, :40]
    assert sm.increasing(corner.T, 3)[2] * sm.increasing(corner, 3)[2] < 0


def test_mean_square_is_not_a_variance():
    rectified = np.maximum(np.random.default_rng(0).standard_normal(10**6), 0)
    ratio = (rectified**2).mean() / rectified.var()
    assert f"factor of {0.5 / (0.5 - 1 / (2 * np.pi)):.2f}" in entry("sample variance")
    assert ratio == pytest.approx(0.5 / (0.5 - 1 / (2 * np.pi)), rel=0.01)
    assert f"{ratio**2:.2f} in" in entry("standard deviation of its entries")


def test_norm_and_golden_moments():
    process = sm.RBF(2, kernel_cov=0.5)
    roots = process.moments(40) ** (1 / np.arange(1, 41))
    assert (np.diff(roots) < 0).all() and roots[-1] > process.eigenvalues(1)[0]
    assert roots[-1] == pytest.approx(process.eigenvalues(1)[0], rel=0.01)
    fall = [sm.RBF(d).moments(2)[1] for d in (1, 2, 3)]  # exponentially with d
    assert fall[0] < 0.5 and fall[1:] == pytest.approx([fall[0] ** 2, fall[0] ** 3])


def test_multi_index():
    golden = sm.RBF(2).eigenvalues(3)  # (0, 0), then (0, 1) and (1, 0)
    assert golden[0] > golden[1] and golden[1] == pytest.approx(golden[2])


def test_kong_and_valiant_need_no_zero_mean():
    "All three features are seen, four inputs of two kinds are drawn, in every way."
    table, n = np.array([[1.0, 2.0, 4.0], [3.0, 1.0, 0.5]]), 3
    kernel = table @ table.T / 3
    truth = [np.trace(np.linalg.matrix_power(kernel / 2, k)) for k in range(1, n + 1)]
    draws = [table[list(i)] for i in itertools.product(range(2), repeat=4)]
    found = np.mean([sm.kong_valiant(phi, n, sampled="rows") for phi in draws], axis=0)
    np.testing.assert_allclose(found, truth, rtol=1e-12)
    naive = np.mean([sm.naive(phi, n) for phi in draws], axis=0)
    assert (naive[1:] > 1.01 * np.array(truth)[1:]).all()  # negative control
    unnormalised = [np.trace(np.linalg.matrix_power(phi @ phi.T / 3, n)) for phi in draws]
    np.testing.assert_allclose(np.mean(unnormalised) / 4**n, naive[-1], rtol=1e-12)


def test_one_product_of_kong_and_valiant_spreads():
    phis = [sm.Linear(3).sample(40, 60, random_state=seed) for seed in range(400)]
    one = np.std([(phi[0] @ phi[1] / 60) ** 2 for phi in phis])
    mean = np.std([sm.kong_valiant(phi, 2)[1] for phi in phis])
    said = int(re.search(r"is (\d+) times", entry("single realization")).group(1))
    assert one / mean == pytest.approx(said, rel=0.2)


def test_citation_has_the_version():
    assert f"version = {{{sm.__version__}}}" in (ROOT / "nbs/references.md").read_text()
