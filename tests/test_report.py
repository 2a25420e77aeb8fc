"""The report: numbers of the library, whatever is missing, and safe in a browser."""

import base64
import hashlib
import html
import json
import re
import time
from urllib.parse import unquote

import numpy as np
import pytest
from conftest import ROOT, normal, succeed

import spectral_moments as sm
from spectral_moments.io import command_line
from spectral_moments.io import report as module
from spectral_moments.io.pages import Curve, Ruler, chart, number

pytestmark = pytest.mark.filterwarnings("ignore::spectral_moments.EstimateWarning")
HOSTILE = {
    "<script>document.title = 'taken'</script>": 1,
    "\"'><img src=x onerror=alert(1)>": 2,
    "</main></style></svg>{{7*7}}": 3,
    "a " + "very" * 60: 4,
}


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    monkeypatch.setattr(module, "DRAWS", (4, 4))


def recording(seed=1, shape=(2, 40, 50)):
    "Two noisy trials of a process with five dimensions."
    signal = sm.Linear(5, scale=0.2).sample(*shape[1:], random_state=seed)
    return signal + 0.5 * normal(shape, seed)


def sections(page):
    return re.findall("<section><h2>(.*?)</h2>", page)


def kept(page):
    "The numbers that the page offers, by recording."
    link = re.search(r'href="data:application/json,([^"]*)"', page)[1]
    return json.loads(unquote(link))


def test_numbers_are_those_of_the_library(tmp_path):
    phi, path = recording(), tmp_path / "page.html"
    assert sm.report(phi, path, title="A & B") == path
    page, est = path.read_text(), sm.estimate(phi, 4)
    assert kept(page) == {"A & B": json.loads(json.dumps(est.to_dict()))}
    first, *rest = module.PARTS
    assert sections(page) == [first, "What not to trust", *rest, "Methods"]
    low, high = (number(x) for x in est.dimension().interval())
    strong = f"<strong>{est.dimension():.2f} dimensions</strong>"
    assert f"{strong}, 95% interval {low} to {high}" in page
    assert html.escape(est.sentence()) in page
    assert all(html.escape(note) in page for note in est.notes)
    table = [f"<td>{number(x[2])}</td>" for x in (est.values, est.stderr, *est.interval())]
    assert "".join(table) in page
    check = sm.subsample_check(phi, 2, n_draws=4)
    values = unquote(page.split("<h2>Submatrix test")[1])
    assert f",{check.ratios('naive')[0][0, 1]}," in values
    assert len(page) < 3e6 and page.count("<svg") == 5 and "Left out" not in page
    again = sm.report(phi, tmp_path / "again.html", title="A & B").read_text()
    assert again == page


def test_several_are_compared(tmp_path):
    systems = {"a": recording(1), "b": recording(2)[:, :, :30]}
    options = dict(paired="inputs", progress=True)
    page = sm.report(systems, tmp_path / "x.html", **options).read_text()
    first = ["Dimensions", "What not to trust", "Differences", "Alignments"]
    assert sections(page)[:4] == first
    estimates = {name: sm.estimate(x, 4) for name, x in systems.items()}
    compared = sm.compare(estimates, "dimension", paired="inputs").rows
    alike = sm.alignments(systems)
    for row in compared:
        difference, error = number(row["difference"]), number(row["error"])
        assert f"<td>{difference}</td><td>{error}</td>" in page
    assert f">{number(alike.values[0, 1], 2)}<small>" in page
    apart = sm.report(estimates, tmp_path / "x.html").read_text()
    assert "taken as independent" in apart
    assert "Left out: it needs recordings of the" in apart


HOLES = recording()[0]
HOLES[3:9, 4] = HOLES[20, 7] = np.nan
GIVEN = {  # what is given, its options, and the parts that are left out
    "one trial": (recording()[0], {}, 0),
    "two orders": (recording(), dict(n_max=2), 1),
    "few groups": (sm.Recording(recording(), np.arange(40) // 4), {}, 2),
    "gaps": (HOLES, {}, 0),
    "layer": (recording(), dict(population=(None, 50)), 1),
    "counts": (np.random.default_rng(1).poisson(2, (40, 50)), dict(noise="poisson"), None),
    "noise": (normal((2, 30, 20)), {}, None),
    "constant": (np.ones((9, 9)), {}, None),
    "tiny": (normal((4, 4)), dict(n_max=2), None),
    "an estimate": ({"x": sm.estimate(recording(), 4)}, {}, 2),
    "without errors": (sm.estimate(recording(), 4, stderr=False), {}, 5),
    "given moments": (sm.from_moments([1, 0.1, 0.02]), {}, None),
    "naive": (recording(), dict(method="naive"), None),
    "all unknown": (dict(a=normal((2, 30, 20)), b=np.zeros((9, 8))), {}, None),
}


@pytest.mark.parametrize("name", GIVEN)
def test_whatever_is_given(name, tmp_path):
    given, options, lost = GIVEN[name]
    page = sm.report(given, tmp_path / "x.html", **options).read_text()
    text = visible(page).replace("+- inf", "")  # what an unknown error prints as
    assert "Methods" in text and not re.search(r"\b(nan|inf|None|\w*Error)\b", text)
    found = re.findall("Left out: [^<]*", page)
    assert lost is None or len(found) == lost, found
    assert all(len(line) > 20 for line in found)


def visible(page):
    "The text that a reader sees."
    page = re.sub("<(style|script)>.*?</", "", page, flags=re.S)
    return html.unescape(re.sub("<[^>]*>", " ", page))


def test_parts_that_fail_or_take_too_long(tmp_path, monkeypatch):
    def fails(subject):
        raise RuntimeError("<b>an\nodd</b> reason")

    parts = {"Fails": fails, "Sleeps": lambda _: time.sleep(3)}
    parts |= {"After": module.part_moments, "Last": module.part_more}
    monkeypatch.setattr(module, "PARTS", parts)
    began = time.monotonic()
    page = sm.report(recording(), tmp_path / "x.html", seconds=1).read_text()
    assert time.monotonic() - began < 30
    assert "Left out: &lt;b&gt;an odd&lt;/b&gt; reason." in page
    assert page.count("Left out: it takes too long.") == 3  # and none after it is begun
    assert "What not to trust" in page and "Methods" in page


def test_bad_arguments_leave_the_old_page(tmp_path):
    path = tmp_path / "x.html"
    path.write_text("old")
    wrong = [({}, {}), ({1: recording()}, {}), (recording(), dict(paired="rows"))]
    for given, options in [*wrong, (recording(), dict(n_max=1)), (np.ones(3), {})]:
        with pytest.raises(ValueError):
            sm.report(given, path, **options)
    assert path.read_text() == "old" and [*tmp_path.iterdir()] == [path]


def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["<i>a.npy", "b.npy"]
    for k, name in enumerate(names):
        np.save(name, recording(k, (1, 30, 20 + k))[0])
    assert command_line.main(["report", names[0]]) == 0
    assert capsys.readouterr().out == "report.html\n"
    page = (tmp_path / "report.html").read_text()
    assert [*kept(page)] == ["<i>a.npy"] and "<i>" not in page
    call = ["report", *names, "-o", "two.html", "--paired", "inputs", "--n-max", "2"]
    assert command_line.main([*call, "--no-center", "--seed", "3"]) == 0
    found = kept((tmp_path / "two.html").read_text())
    assert [*found] == names and found["b.npy"]["settings"]["seed"] == 3
    assert not found["b.npy"]["settings"]["center"]
    twice = ["report", "b.npy", "b.npy", "--n-max", "2", "--population", "inf", "all"]
    assert command_line.main(twice) == 0
    assert [*kept((tmp_path / "report.html").read_text())] == ["b.npy (1)", "b.npy (2)"]
    capsys.readouterr()
    for call in (
        ["no.npy"],
        ["b.npy", "-o", "no/where.html"],
        [*names, "--population", "all", "all"],
        ["b.npy", "--n-max", "1"],
    ):
        code, said = command_line.main(["report", *call]), capsys.readouterr()
        assert (code, said.out, said.err.count("\n")) == (2, "", 1), said
    call = ["report", *names, "--n-max", "2", "--paired", "features"]
    assert command_line.main(call) == 0  # the comparison alone is left out


def test_numbers_and_rulers():
    said = {0.0: "0.00", -2.5e-9: "−2.50 × 10⁻⁹", 999.9: "1000", 123456.0: "123000"}
    assert {x: number(x) for x in said} == said
    assert number(True) == "True" and number(-3) == "-3"
    for low, high, log in ((0, 1e-7, 0), (0, 3e8, 0), (1e-9, 1e9, 1), (3, 4, 1)):
        ticks = Ruler(low, high, log, 0, 1).ticks()
        assert (1 if log else 3) <= len(ticks) <= 8 or (low, high) == (3, 4), ticks
    with pytest.raises(ValueError, match="nothing to draw"):
        chart([Curve("", [1], [np.nan])], ("", ""), label="", about="")


# ------------------------------------------------------------------- every result class
A, B = recording(1), recording(2)
EST = sm.estimate(A, 4)
RESULTS = {
    "Quantity": EST.dimension,
    "Estimate": lambda: EST,
    "Comparison": lambda: sm.compare({"<b>": EST, "y": sm.estimate(B)}, "dimension"),
    "SubsampleCheck": lambda: sm.subsample_check(A, n_draws=3),
    "Sweep": lambda: sm.dimension_sweep(A, n_draws=3),
    "Spectrum": lambda: sm.feasible(EST),
    "Bounds": lambda: sm.operator_norm(EST),
    "LawFit": lambda: sm.power_law(EST),
    "Alignment": lambda: sm.alignment(A, B),
    "Alignments": lambda: sm.alignments({"<b>": A, "y": B}),
    "PermutationTest": lambda: sm.alignments({"<b>": A, "y": B}).permutation_test(19),
    "ShapeBounds": lambda: sm.shape_bounds(A, B),
    "NoiseCheck": lambda: sm.noise_check(np.random.default_rng(0).poisson(2, (2, 9, 8))),
    "NoiseMoments": lambda: sm.noise_moments(A),
    "SpectralFunction": lambda: sm.spectral_function(recording()[0], "effective_rank"),
    "Classes": lambda: sm.by(recording()[0], np.arange(40) % 2),
    "LocalDimension": lambda: sm.local_dimension(recording()[0], 0, nearest=20),
    "EstimatorTable": lambda: sm.compare_estimators(sm.Linear(3), [(9, 9)], repetitions=3),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_becomes_what_others_read(name):
    result = RESULTS[name]()
    assert type(result).__name__ == name
    json.dumps(result.to_dict(), allow_nan=False)
    assert len(result.to_frame()) > 0
    page = result._repr_html_()
    assert "<t" in page and "<b>" not in page


def test_no_result_class_is_forgotten():
    methods = ("to_dict", "to_frame", "_repr_html_")
    known = {"Stream", "Watch", "watch", "AlignmentStream", "EstimateWarning", "Recording"}
    classes = {name: getattr(sm, name) for name in sm.__all__}
    classes = {k: x for k, x in classes.items() if isinstance(x, type) and k not in known}
    processes = {k for k, x in classes.items() if hasattr(x, "sample")} | {"Process"}
    results = {k: x for k, x in classes.items() if k not in processes}
    assert [k for k, x in results.items() if not all(hasattr(x, m) for m in methods)] == []
    assert {*results} - {*RESULTS} <= {"LayerDimensions"}  # whose tests need torch


def test_sentence():
    said = EST.sentence()
    assert str(EST.dimension()) in said and "40 inputs x 50 features in 2 trials" in said
    assert "repeat no input and no feature" in said and "jackknife over inputs and" in said
    biased = sm.estimate(A, 2, method="naive").sentence()
    assert "biased" in biased and "jackknife" not in biased
    groups = sm.estimate(A, 2, groups=np.arange(40) // 4, center=False).sentence()
    assert "not centred, 10 groups of inputs" in groups


# --------------------------------------------------------------------------- in a browser
def test_only_the_script_of_the_frame_may_run():
    frame = (ROOT / "spectral_moments/io/report.html").read_text()
    (script,) = re.findall("<script>(.*?)</script>", frame, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in frame


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory):
    systems = {name: recording(seed) for name, seed in HOSTILE.items()}
    path = tmp_path_factory.mktemp("page") / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DRAWS", (4, 4))
        title = "<script>document.title = 'taken'</script>"
        return sm.report(systems, path, title=title, paired="inputs")


CLIPPED = """
const inside = (a, b) => a.left > b.left - 1 && a.right < b.right + 1 && a.top > b.top - 1
    && a.bottom < b.bottom + 1;
const wrong = [];
for (const svg of document.querySelectorAll("svg"))
    for (const text of svg.querySelectorAll("text"))
        if (!inside(text.getBoundingClientRect(), svg.getBoundingClientRect()))
            wrong.push(text.textContent);
for (const e of document.querySelectorAll("main *"))
    if (!e.closest("svg, .wide") && e.scrollWidth > e.clientWidth + 1 && e.clientWidth
        && getComputedStyle(e).display !== "inline")
        wrong.push(e.tagName + " " + e.textContent.slice(0, 30));
if (document.documentElement.scrollWidth > innerWidth) wrong.push("the page");
return wrong;
"""


@pytest.mark.parametrize("width", [390, 1300])
def test_hostile_names_in_a_browser(chromium, hostile_page, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    chromium.get(hostile_page.as_uri())
    assert chromium.title == "<script>document.title = 'taken'</script>"
    shown = [e.text for e in chromium.find_elements("css selector", "article header h2")]
    assert shown == [*HOSTILE]
    count = "return document.querySelectorAll(arguments[0]).length"
    assert chromium.execute_script(count, "script") == 1
    assert chromium.execute_script(count, "img, main script, main style, iframe") == 0
    assert chromium.execute_script(count, "svg") == 1 + 5 * len(HOSTILE)
    assert chromium.execute_script(count, "svg circle") > 40 * len(HOSTILE)
    assert chromium.execute_script(CLIPPED) == []
    fetched = "return performance.getEntriesByType('resource').length"
    assert chromium.execute_script(fetched) == 0
    assert [x for x in chromium.get_log("browser") if x["level"] != "INFO"] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_hover_and_themes(chromium, hostile_page, theme):
    from selenium.webdriver.common.action_chains import ActionChains

    chromium.get(hostile_page.as_uri())
    media = [{"name": "prefers-color-scheme", "value": theme}]
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    style = "return getComputedStyle(document.body).backgroundColor"
    ground = chromium.execute_script(style)
    lightness = np.mean([int(x) for x in re.findall(r"\d+", ground)[:3]])
    assert (lightness > 200) == (theme == "light")
    point = chromium.find_element("css selector", "article svg circle[data-v]")
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", point)
    tip = chromium.find_element("css selector", ".tip")
    assert not tip.is_displayed()
    ActionChains(chromium).move_to_element(point).perform()
    assert tip.is_displayed() and tip.text == point.get_attribute("data-v")
    link = chromium.find_element("css selector", "a[download]").get_attribute("href")
    assert "\n" in unquote(link) and link.startswith("data:text/csv")


def test_report_needs_no_other_package(tmp_path):
    code = (
        "import sys, spectral_moments as sm; phi = sm.Linear(3).sample(9, 9); "
        f"sm.report(phi, {str(tmp_path / 'x')!r}); "
        "print(*{'matplotlib', 'pandas', 'torch'} & set(sys.modules))"
    )
    assert succeed("-c", code).stdout.strip() == ""


def test_a_biased_method_is_not_called_unbiased(tmp_path):
    page = tmp_path / "x.html"
    sm.report(recording()[0], page, n_max=2, method="naive")
    assert "the whole, naive" in page.read_text()
    sm.report(recording()[0], page, n_max=2)
    assert "the whole, 95%" in page.read_text() and "whole, naive" not in page.read_text()


def test_names_command_no_terminal(tmp_path):
    """Escapes in names are shown as question marks, in print, in notebooks and in pages."""
    name = "\x1b]0;mine\x07<b>\x1b[31m"
    shown = (
        sm.alignments({name: A, "b": A + 1}),
        sm.by(A, [name, "b"] * (A.shape[-2] // 2)),
        sm.compare({name: sm.estimate(A, 2), "b": sm.estimate(A + 1, 2)}),
    )
    for found in shown:
        for text in (str(found), found._repr_html_()):
            assert "\x1b" not in text and "?[31m" in text
        assert "<b>" not in found._repr_html_()
    page = sm.report({name: A, "b": A}, tmp_path / "r.html", n_max=2, seconds=0).read_text()
    assert "\x1b" not in page and "?[31m" in page and "<b>" not in page
