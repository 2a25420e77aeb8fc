"""The page "Your own matrix": its numbers are those of the library, bad files are refused.

The formulas run under node, the page in a headless Chromium; each half is skipped where the
program is not installed.
"""

import functools
import io
import json

import numpy as np
import pytest
from conftest import ROOT
from scipy.special import stdtrit
from test_cycles_page import assert_whole, find, narrow, needs_node
from test_cycles_page import browser as browser
from test_cycles_page import node as formulas

import spectral_moments as sm
from spectral_moments.processes import Linear

SCRIPT = ROOT / "_static/your_matrix.js"
PRELUDE = """
const files = require("fs");
const bytes = (name) => Uint8Array.from(files.readFileSync(name)).buffer;
const words = (f) => { try { return f(); } catch (e) {
  if (!(e instanceof c.Refused)) throw e; return e.message; } };
const plain = (key, v) => typeof v === "number" && !Number.isFinite(v) ? String(v) :
  v instanceof Float64Array ? Array.from(v) : v;
"""
node = functools.partial(formulas, script=SCRIPT, prelude=PRELUDE)


def saved(tmp_path, contents):
    "Files with these contents, as a list in JavaScript."
    names = []
    for k, content in enumerate(contents):
        names.append(str(tmp_path / f"file{k}"))
        (tmp_path / f"file{k}").write_bytes(content)
    return json.dumps(names)


def measured(tmp_path, matrices):
    "What the page finds of some matrices."
    files = saved(tmp_path, map(npy, matrices))
    return node(f"{files}.map((name) => c.dimension(c.readBytes(bytes(name))))")


def npy(array):
    "A file as `np.save` writes it."
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def matrix(P, Q, seed=0):
    "Five strong dimensions, weak noise, columns of unequal size and mean."
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(P, 5)) @ rng.normal(size=(5, Q)) + rng.normal(size=(P, Q)) / 2
    return (phi + rng.normal(size=Q)) * rng.exponential(size=Q)


def expected(phi):
    "What the library says, by the names of the page."
    quantity = sm.participation_ratio(phi, method="all_cycles")  # not by sums over rows
    naive = sm.estimate(phi, 2, method="naive").dimension().value
    found = dict(naive=naive, value=quantity.value, stderr=quantity.stderr)
    return found | dict(zip(("low", "high"), quantity.interval()))


def compare(found, phi, rtol=1e-9):
    "Numbers of the page against those of the library; null is not finite."
    for name, value in expected(phi).items():
        shown = found[name]
        if shown is None:
            assert not np.isfinite(value)
        else:
            np.testing.assert_allclose(float(shown), value, rtol=rtol, err_msg=name)


# --------------------------------------------------------------------------- the formulas
SHAPES = (5, 3), (12, 9), (9, 60), (40, 30), (100, 50), (101, 50), (150, 120), (600, 20)


@needs_node
def test_numbers_are_those_of_the_library(tmp_path):
    given = [matrix(*shape) for shape in SHAPES]
    given += [np.random.default_rng(k).normal(size=(20, 30)) for k in range(4)]  # no limit
    given += [given[1] + 1e4]
    found = measured(tmp_path, given)
    for phi, numbers in zip(given, found, strict=True):
        rtol = 1e-6 if abs(phi.mean()) > 1e3 else 1e-9
        compare(numbers, phi, rtol=rtol)
    assert any(numbers["high"] == "Infinity" for numbers in found)
    assert any(numbers["value"] == "NaN" for numbers in found)


@needs_node
def test_deletions_where_the_library_takes_the_derivative(tmp_path):
    phi = matrix(100, 2000)
    compare(measured(tmp_path, [phi])[0], phi, rtol=5e-3)


@needs_node
def test_quantiles_of_student():
    degrees = [3, 3.7, 8, 40.5, 1e3, 1e6]
    found = node(f"{degrees}.map((nu) => c.student(0.95, nu))")
    np.testing.assert_allclose(found, stdtrit(degrees, 0.975), rtol=1e-8)
    assert node("c.student(0.95, 1)") == pytest.approx(found[0])  # never fewer than three


@needs_node
def test_no_unit_matters(tmp_path):
    phi = matrix(12, 9)
    for numbers in measured(tmp_path, [phi, 1e200 * phi, 1e-200 * phi]):
        compare(numbers, phi)


@needs_node
def test_sweep(tmp_path):
    phi, d = Linear(10).sample(50, 60, np.random.default_rng(1)), 10
    files = saved(tmp_path, [npy(phi)])
    sizes, drawn = node(
        "((w, random) => [c.sweepSizes(60), c.sweepSizes(60).map((size) => Array.from("
        "{ length: 30 }, () => c.sweepDraw(w, size, random)))])"
        f"(c.centred(c.readBytes(bytes({files}[0]))), require('{ROOT}/_static/cycles.js')"
        ".generator(2))"
    )
    assert sizes[0] == 5 and sizes[-1] == 60 and sizes == sorted(set(sizes))
    for size, some in zip(sizes, drawn, strict=True):
        columns = some[0]["columns"]
        assert len(set(columns)) == size
        part = phi[:, columns]
        centred = part - part.mean(0)
        unbiased, naive = sm.all_cycles(part, 2, center=True), sm.naive(centred, 2)
        for name, (one, two) in dict(unbiased=unbiased, naive=naive).items():
            first, second = some[0][name]
            assert second / first**2 == pytest.approx(two / one**2, rel=1e-9)
    names = "naive", "unbiased"
    pairs = [[[x[name] for x in some] for some in drawn] for name in names]
    lines = dict(zip(names, node(f"{pairs}.map((line) => line.map(c.sweepPoint))")))
    for name, points in lines.items():
        for point, some in zip(points, drawn, strict=True):
            moments = np.array([x[name] for x in some])
            m1, m2 = moments.mean(0)
            assert point["line"] == pytest.approx(m1**2 / m2)
            ends = 1 / np.quantile(moments[:, 1] / moments[:, 0] ** 2, [0.75, 0.25])
            ends = [end if end > 0 else np.inf for end in ends]
            np.testing.assert_allclose([float(point["low"]), float(point["high"])], ends)
    naive, unbiased = ([p["line"] for p in lines[name]] for name in names)
    assert (np.diff(naive) > 0).all() and naive[-1] < 0.95 * d  # it climbs
    assert np.ptp(unbiased[1:]) < 0.2 * d < np.ptp(naive)  # it does not


# ------------------------------------------------------------------------------ the files
NUMBERS = [[1.5, -2, 3e-2], [0, 4, 5], [7, 8, 9], [1, 1, 2], [3, 5, 8]]


@needs_node
def test_files_of_numpy(tmp_path):
    kinds = ["<f8", ">f8", "<f4", ">f4", "<f2", "|i1", "<i2", ">i4", "<i8"]
    kinds += ["|u1", ">u2", "<u4", "<u8", "|b1"]
    exact = np.array(NUMBERS)
    given = [(exact if kind[1] in "fi" else abs(exact)).astype(kind) for kind in kinds]
    given += [np.asfortranarray(x) for x in given]
    halves = np.array([[6e-8, -1e-5, 65504, -0.0, 0.333]] * 5, dtype="f2")
    given += [halves, halves.T]
    files = saved(tmp_path, map(npy, given))
    read = node(f"{files}.map((name) => c.readBytes(bytes(name)))")
    for array, found in zip(given, read, strict=True):
        assert (found["P"], found["Q"]) == array.shape
        np.testing.assert_array_equal(found["data"], array.astype(float).ravel())


@needs_node
def test_files_of_text(tmp_path):
    text = lambda mark, rows=NUMBERS: "\n".join(mark.join(map(str, row)) for row in rows)
    named = "\n".join(f"r{k},{line}" for k, line in enumerate(text(",").split("\n")))
    counted = "\n".join(f"{k},{line}" for k, line in enumerate(text(",").split("\n")))
    columns, rows = "names of the columns", "names of the rows"
    given = {
        text(","): (),
        text(" , ").replace("\n", "\r\n") + "\r\n\r\n": (),
        text("\t"): (),
        "  " + text("   "): (),
        text(";").replace(".", ","): (),  # a decimal comma
        "\ufeff" + text(","): (),
        "# by np.savetxt\n" + text(" "): (),
        "a,b,c\n" + text(","): (columns,),
        '"a, b",b,c\n' + text(","): (columns,),
        "0,1,2\n" + text(","): (columns,),
        ",0,1,2\n" + counted: (columns, rows),  # as pandas writes it
        "a,b,c\n" + named: (columns, rows),  # as R writes it
        "day,a,b,c\n" + named.replace("r", "2020-01-"): (columns, rows),
        named: (rows,),
        counted: (rows,),
    }
    files = saved(tmp_path, [x.encode() for x in given])
    read = node(f"{files}.map((name) => c.readBytes(bytes(name)))")
    for found, said in zip(read, given.values(), strict=True):
        np.testing.assert_array_equal(found["data"], np.ravel(NUMBERS))
        assert len(found["notes"]) == len(said)
        assert all(what in note for what, note in zip(said, found["notes"]))


@needs_node
def test_bad_files_are_refused_in_words(tmp_path):
    lines = ["1,2,3", "4,5,7", "0,0,1", "2,1,1", "5,3,9"]
    text = lambda k, line: "\n".join([*lines[:k], line, *lines[k + 1 :]]).encode()
    good, gap = np.array(NUMBERS), np.array(NUMBERS)
    wild = matrix(30, 20)
    gap[2, 1], wild[3, 4] = np.nan, 1e12
    given = [
        (text(2, "0,zero,1"), "Line 3, entry 2: “zero” is not a number."),
        (text(0, "1,x,3"), "Line 1, entry 2"),
        (text(3, "2,1"), "Line 4 has 2 entries, the lines before it have 3"),
        (text(1, "4,,7"), "line 2, entry 2 is missing"),
        (text(1, "4,NaN,7"), "line 2, entry 2 is missing"),
        (text(1, "4,-inf,7"), "infinite"),
        (text(1, "4,1e999,7"), "beyond the range"),
        (text(1, "4,0x10,7"), "not a number"),
        (b"1,5\t2\t3\n4\t5,5\t6", "with a decimal point it is"),
        ("\n".join(lines[:4]).encode(), "4 × 3: too small"),
        (b"1,2\n" * 9, "9 × 2: too small"),
        (b"1\n2\n3", "one entry only"),
        (b"a,b,c", "no numbers"),
        (b"", "nothing here"),
        (b"\n# only this\n", "nothing here"),
        (b"1,1,1\n" * 9, "All rows are the same"),
        ("1,2\n3,4".encode("utf-16"), "neither text nor"),
        (b"PK\x03\x04rest", "archive"),
        (b" " * 64_000_001, "limit here is 64 MB"),
        (npy(good[None]), "3 axes (1 × 5 × 3)"),
        (npy(good.ravel()), "1 axes (15)"),
        (npy(gap), "row 3, column 2 is missing"),
        (npy(wild), "lost to rounding"),
        (npy(good + 1j), "<c16 cannot be read"),
        (npy(good.astype("U5")), "<U5 cannot be read"),
        (npy(np.zeros(5, dtype=[("x", float)])[:, None]), "record cannot be read"),
        (npy(np.zeros((5, 2), dtype="M8[s]")), "M8[s] cannot be read"),
        (npy(good)[:-1], "cut off"),
        (npy(good)[:30], "damaged"),
        (npy(np.zeros((1400, 1400), dtype="i1")), "1400 × 1400: too large for a browser"),
    ]
    files = saved(tmp_path, [content for content, _ in given])
    found = node(f"{files}.map((n) => words(() => c.dimension(c.readBytes(bytes(n)))))")
    for (_, said), message in zip(given, found, strict=True):
        assert said in message, (said, message)
    checks = "words(() => c.checkSize(P, Q) ?? true)"
    found = node(f"[[1200, 1200], [400, 10000], [3, 3]].map(([P, Q]) => {checks})")
    assert found[:2] == [True, True] and "too small" in found[2]


# ------------------------------------------------------------------------------- the page
HARNESS = """<!doctype html><html data-theme="light"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="{0}/your_matrix.css">
<link rel="stylesheet" href="{0}/cycles.css">
<script src="{0}/your_matrix.js"></script><script src="{0}/cycles.js"></script></head>
<body style="margin: 1rem"><div class="cycles-touch your-matrix"></div></body></html>"""
PLACE = "document.querySelector('.your-matrix')"
DROP = f"""
const [name, base64] = arguments, binary = atob(base64), data = new DataTransfer();
data.items.add(new File([Uint8Array.from(binary, (c) => c.charCodeAt(0))], name));
{PLACE}.querySelector('.ym-drop').dispatchEvent(
  new DragEvent('drop', {{ dataTransfer: data, bubbles: true, cancelable: true }}));
"""


@pytest.fixture
def page(browser, tmp_path):
    file = tmp_path / "matrix.html"
    file.write_text(HARNESS.format(SCRIPT.parent.as_uri()))
    browser.get(file.as_uri())
    return browser


def state(page):
    "What the page has found, once it is ready."
    from selenium.webdriver.support.ui import WebDriverWait

    query = f"return {PLACE}.dataset.state || ''"
    return json.loads(WebDriverWait(page, 60).until(lambda b: b.execute_script(query)))


def press(page, text):
    buttons = page.find_elements("css selector", ".your-matrix button")
    next(b for b in buttons if text in b.text).click()


def test_page_measures_a_dropped_file(page):
    import base64

    phi = matrix(40, 30)
    page.execute_script(DROP, "phi.npy", base64.b64encode(npy(phi)).decode())
    found = state(page)
    compare(found, phi)
    said, want = find(page, "[aria-live=polite]").text, expected(phi)
    assert "phi.npy: 40 rows (inputs) × 30 columns (features)" in said
    assert f"{want['value']:.3g} ± {want['stderr']:.2g}" in said
    assert f"95%: {want['low']:.3g} to {want['high']:.3g}" in said
    assert len(page.find_elements("css selector", ".ym-line")) == 2
    ends = [found["lines"][name][-1]["line"] for name in ("naive", "unbiased")]
    m1, m2 = sm.estimate(phi, 2).values
    np.testing.assert_allclose(ends, [want["naive"], m1**2 / m2], rtol=1e-9)
    press(page, "swap")
    compare(state(page), phi.T)
    page.execute_script(DROP, "bad.csv", base64.b64encode(b"1,2,3\n4,5,x\n").decode())
    assert "is not a number" in state(page)["refused"]
    assert "“x” is not a number" in find(page, ".ct-bad").text
    assert not page.find_elements("css selector", ".ym-line")


def test_page_takes_chosen_files_typed_numbers_and_examples(page, tmp_path):
    found = state(page)  # the first example is there at once
    assert found["low"] < 20 < found["high"] and found["naive"] < found["low"]
    assert len(page.find_elements("css selector", ".ct-truth")) == 1
    press(page, "only noise")
    assert state(page)["high"] is None
    assert "no upper limit" in find(page, "[aria-live=polite]").text
    phi = matrix(12, 9).round(3)
    np.savetxt(tmp_path / "phi.csv", phi, delimiter=",", header="from a spreadsheet")
    find(page, "input[type=file]").send_keys(str(tmp_path / "phi.csv"))
    compare(state(page), phi)
    find(page, "summary").click()
    field = find(page, "textarea")
    lines = field.get_attribute("value").strip().split("\n")
    typed = np.array([line.split() for line in lines])
    press(page, "measure these")
    compare(state(page), typed.astype(float))
    field.clear()
    field.send_keys("1 2 3\n4 5")
    press(page, "measure these")
    assert "Line 2 has 2 entries" in state(page)["refused"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_is_whole(page, theme):
    narrow(page, theme)
    press(page, "20 dimensions")
    state(page)
    every = "document.querySelectorAll('details')"
    page.execute_script(f"{every}.forEach((d) => (d.open = true))")
    fields = "[...document.querySelectorAll('input, textarea')]"
    assert page.execute_script(f"return {fields}.every((e) => e.labels[0])")
    assert_whole(page)
