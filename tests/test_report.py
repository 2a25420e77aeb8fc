"""The page of a recording: complete, and never wrong about it."""

import html
import json
import re
import sys
from urllib.parse import unquote

import numpy as np
import pytest
from conftest import normal

import spectral_moments as sm
from spectral_moments.io import report as module

CHEAP = ["Moments", "What more data would give", "Spectrum", "Power law"]
HOSTILE = {"<script>alert(1)</script>\x1b[31m & b": 1, "x" * 80: 2}


def recording(seed=0, shape=(2, 30, 40)):
    "Repeats (T, P, Q) of a signal of few dimensions."
    signal = sm.Linear(5).sample(*shape[1:], random_state=seed)
    return signal + 0.3 * normal(shape, seed)


def visible(page):
    "The text that a reader sees."
    page = re.sub("<style>.*?</style>|<svg.*?</svg>", "", page, flags=re.S)
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", page)).split())


def sections(page):
    return [html.unescape(x) for x in re.findall("<h2>(.*?)</h2>", page)]


def make(path, given, **options):
    return sm.report(given, path / "x.html", **options).read_text(encoding="utf-8")


@pytest.fixture
def undrawn(monkeypatch):
    "Pages without their figures, which take most of the time."
    monkeypatch.setattr(module, "draw_svg", lambda *_: "")


def test_one_recording(tmp_path):
    phi, options = recording(), dict(title=np.array("A & B"), trials=True)
    page, est = make(tmp_path, phi, **options), sm.estimate(phi, 4, trials=True)
    text = visible(page)
    assert text.startswith(f"A & B A & B Dimension {est.dimension()}")
    assert sections(page)[1:] == [*CHEAP, "Dimension of parts", "Noise", "Methods"]
    assert "Left out" not in text and " ".join(est.sentence().split()) in text
    assert all(f"{x:.4g}" in text for x in (*est.values, *est.stderr))
    (link,) = re.findall('href="data:application/json,(.*?)"', page)
    assert json.loads(unquote(link)) == {"A & B": json.loads(json.dumps(est.to_dict()))}
    assert len(page) < 1e6 and page.count("<svg") >= 3  # one file, without script
    assert not re.search(r"<script|<img|<link|@import|url\(http|\son\w+=", page)
    assert "default-src 'none'" in page and "currentColor" in page
    assert "light-dark(" in page and "@media print" in page
    assert module.INK not in page and "#000000" not in page


def test_several_are_compared(tmp_path, undrawn):
    systems = {"a": recording(1), "b": recording(2)[:, :, :30]}
    page = make(tmp_path, systems, paired="inputs", trials=True, n_max=2)
    text = visible(page)
    assert sections(page)[1] == "Do the dimensions differ?"
    assert {"a: Moments", "b: Moments", "Alignment"} <= {*sections(page)}
    (row,) = sm.compare(systems, paired="inputs", trials=True).rows
    assert f"{row['difference']:.4g}" in text and "paired by inputs" in text
    alike = sm.alignments(systems, trials=True)
    assert f"{alike.values[0, 1]:.2f}" in text
    estimates = {name: sm.estimate(x, trials=True) for name, x in systems.items()}
    text = visible(make(tmp_path, estimates))  # the recordings are not known
    assert "taken as independent" in text and "Alignment" not in text


def movies():
    "Frames of movies that are alike, with gaps."
    phi = np.repeat(recording()[0], 2, axis=0) + 0.1 * normal((60, 40), 5)
    return np.where(np.random.default_rng(1).random(phi.shape) < 0.15, np.nan, phi)


UNEQUAL = recording()
UNEQUAL[1, 15:] = np.nan  # the second repeat of half of the inputs
GIVEN = {  # what is given, its options, and parts that may be left out
    "movies with gaps": (movies(), dict(groups=np.arange(60) // 2), 1),
    "unequal repeats": (UNEQUAL, dict(trials=True), 2),  # no law, no noise by itself
    "layer": (recording()[0], dict(population="all"), 1),
    "counts": (np.random.default_rng(1).poisson(2, (30, 40)), dict(noise="poisson"), 9),
    "constant": (np.ones((9, 9)), {}, 9),
    "tiny": (normal((4, 4)), dict(n_max=2), 9),
    "an estimate": (sm.from_moments([1, 0.1, 0.02]), {}, 9),
}


@pytest.mark.parametrize("name", GIVEN)
def test_whatever_is_given(name, tmp_path):
    given, options, lost = GIVEN[name]
    page = make(tmp_path, given, **options)
    text = visible(page)
    assert "Methods" in text and not re.search(r"\b(None|\w*Error|Traceback)\b", text)
    found = re.findall("Left out: [^.]*", text)
    assert len(found) <= lost, found
    assert {*CHEAP, "Methods"} <= {*sections(page)}


def test_caveats_are_on_the_page(tmp_path, undrawn):
    phi = np.concatenate([recording()[0], recording()[0][:20]])
    page = make(tmp_path, phi, n_max=2)
    text, est = visible(page), sm.estimate(phi)
    assert est.notes and est.dimension().remark
    before = text[: text.index("Moments")]
    for caveat in (*est.notes, *est.dimension().remark.splitlines()[1:]):
        assert caveat in before
    assert "nothing" not in text.lower() and "fair sample" in text


def test_parts_that_fail_or_would_take_too_long(tmp_path, monkeypatch, undrawn):
    def fails(*_, **__):
        raise RuntimeError("<b>an\nodd</b> reason")

    monkeypatch.setattr(sm, "feasible", fails)
    monkeypatch.setattr(module, "MAX_PARTS_ENTRIES", 100)
    page = make(tmp_path, recording()[0])
    assert "Left out: &lt;b&gt;an odd&lt;/b&gt; reason." in page
    assert "Left out: the matrix is large; use sm.dimension_by_size" in page


def test_bad_arguments_leave_the_old_page(tmp_path):
    path, phi = tmp_path / "x.html", recording()[0]
    path.write_text("old")
    wrong = [({}, {}), (phi, dict(paired="rows")), (phi, dict(n_max=1)), (np.ones(3), {})]
    for given, options in [*wrong, (phi, dict(groups=[1])), (phi, dict(paired=phi))]:
        with pytest.raises(sm.ArgumentError):
            sm.report(given, path, **options)
    with pytest.raises(TypeError, match=r"report\(\) has no option 'centre'; .*'center'"):
        sm.report(phi, path, centre=True)
    assert path.read_text() == "old" and [*tmp_path.iterdir()] == [path]


def test_without_its_packages(tmp_path, monkeypatch):
    for name in ("matplotlib", "jinja2"):
        monkeypatch.setitem(sys.modules, name, None)
        remedy = rf"{name}.*; pip install 'spectral_moments\[report\]'"
        with pytest.raises(ImportError, match=remedy):
            sm.report(recording()[0], tmp_path / "x.html", n_max=2)
        monkeypatch.undo()


def test_hostile_names(tmp_path):
    systems = {name: recording(seed)[0] for name, seed in HOSTILE.items()}
    page = make(tmp_path, systems, title="<script>1</script>", n_max=2)
    assert "<script" not in page and "\x1b" not in page and "?[31m &amp; b" in page
    assert "x" * 80 + ": Single trial" in visible(page)
