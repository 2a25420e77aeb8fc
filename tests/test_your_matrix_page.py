"""The page "Your own matrix": its numbers are those of the library, bad files are refused.

The formulas run under node, the page in a headless Chromium; each half is skipped where the
program is not installed.
"""

import base64
import functools
import io
import json

import numpy as np
from conftest import ROOT
from test_cycles_page import assert_whole, needs_node, state
from test_cycles_page import node as formulas

import spectral_moments as sm

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


def compare(found, phi, rtol=1e-9):
    "Numbers of the page against those of the library; null is not finite."
    quantity, m = sm.participation_ratio(phi), sm.naive(phi - phi.mean(0), 2)
    expected = dict(naive=m[0] ** 2 / m[1], value=quantity.value, stderr=quantity.stderr)
    expected |= dict(zip(("low", "high"), quantity.interval()))
    if np.isnan(quantity.value):  # undetermined: only the ends are shown
        del expected["stderr"]
    for name, value in expected.items():
        shown = np.nan if found[name] is None else float(found[name])
        if np.isfinite(value) or np.isfinite(shown):
            np.testing.assert_allclose(shown, value, rtol=rtol, err_msg=name)


SHAPES = (5, 3), (12, 9), (9, 60), (40, 30), (101, 50), (150, 120), (600, 20)


@needs_node
def test_numbers_are_those_of_the_library(tmp_path):
    given = [matrix(*shape) for shape in SHAPES]
    given += [np.random.default_rng(k).normal(size=(20, 30)) for k in range(4)]  # no limit
    given += [1e60 * given[1], given[1] + 1e4]
    files = saved(tmp_path, map(npy, given))
    found = node(f"{files}.map((name) => c.dimension(c.readBytes(bytes(name))))")
    for phi, numbers in zip(given, found, strict=True):
        compare(numbers, phi, rtol=1e-6 if 1e3 < abs(phi.mean()) < 1e9 else 1e-8)
    assert any(numbers["high"] == "Infinity" for numbers in found)


NUMBERS = [[1.5, -2, 3e-2], [0, 4, 5], [7, 8, 9], [1, 1, 2], [3, 5, 8]]


@needs_node
def test_files_are_read(tmp_path):
    kinds = ["<f8", ">f8", "<f4", "<f2", "|i1", ">i4", "<i8", "|u1", "<u8", "|b1"]
    arrays = [np.abs(NUMBERS).astype(kind) for kind in kinds]
    arrays += [np.asfortranarray(x) for x in arrays]
    text = lambda mark: "\n".join(mark.join(map(str, row)) for row in NUMBERS)
    named = "\n".join(f"r{k},{line}" for k, line in enumerate(text(",").split("\n")))
    texts = [text(","), text(" , ").replace("\n", "\r\n"), text("\t"), "  " + text("   ")]
    texts += [text(";").replace(".", ","), "\ufeff" + text(","), "# a\n" + text(" ")]
    texts += ["a,b,c\n" + text(","), '"a, b",b,c\n' + text(","), "a,b,c\n" + named, named]
    files = saved(tmp_path, [*map(npy, arrays), *(x.encode() for x in texts)])
    read = node(f"{files}.map((name) => c.readBytes(bytes(name)))")
    wanted = arrays + [np.array(NUMBERS)] * len(texts)
    for array, found in zip(wanted, read, strict=True):
        assert (found["P"], found["Q"]) == array.shape
        np.testing.assert_array_equal(found["data"], array.astype(float).ravel())


@needs_node
def test_bad_files_are_refused_in_words(tmp_path):
    lines = ["1,2,3", "4,5,7", "0,0,1", "2,1,1", "5,3,9"]
    text = lambda k, line: "\n".join([*lines[:k], line, *lines[k + 1 :]]).encode()
    good, gap, wild = np.array(NUMBERS), np.array(NUMBERS), matrix(30, 20)
    gap[2, 1], wild[3, 4] = np.nan, 1e12
    given = [
        (text(2, "0,zero,1"), "Line 3, entry 2: “zero” is not a number."),
        (text(3, "2,1"), "Line 4 has 2 entries, the lines before it have 3"),
        (text(1, "4,,7"), "line 2, entry 2 is missing"),
        (text(1, "4,-inf,7"), "infinite"),
        (b"1,2\n" * 9, "9 × 2: too small"),
        (b"", "nothing here"),
        (b"1,1,1\n" * 9, "All rows are the same"),
        (b"PK\x03\x04rest", "archive"),
        (npy(good[None]), "3 axes (1 × 5 × 3)"),
        (npy(gap), "row 3, column 2 is missing"),
        (npy(wild), "lost to rounding"),
        (npy(good + 1j), "<c16 cannot be read"),
        (npy(good)[:-1], "cut off"),
        (npy(np.zeros((1400, 1400), dtype="i1")), "1400 × 1400: too large for a browser"),
    ]
    files = saved(tmp_path, [content for content, _ in given])
    found = node(f"{files}.map((n) => words(() => c.dimension(c.readBytes(bytes(n)))))")
    for (_, said), message in zip(given, found, strict=True):
        assert said in message, (said, message)


HARNESS = """<!doctype html><html data-theme="light"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="{0}/your_matrix.css">
<link rel="stylesheet" href="{0}/cycles.css">
<script src="{0}/your_matrix.js"></script><script src="{0}/cycles.js"></script></head>
<body style="margin: 1rem"><div class="cycles-touch your-matrix"></div></body></html>"""
DROP = """
const [name, base64] = arguments, binary = atob(base64), data = new DataTransfer();
data.items.add(new File([Uint8Array.from(binary, (c) => c.charCodeAt(0))], name));
document.querySelector('.ym-drop').dispatchEvent(
  new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
"""


def test_page(chromium, tmp_path):
    file = tmp_path / "matrix.html"
    file.write_text(HARNESS.format(SCRIPT.parent.as_uri()))
    chromium.get(file.as_uri())
    found = state(chromium, ".your-matrix")  # the first example is there at once
    assert found["low"] < 20 < found["high"] and found["naive"] < found["low"]
    phi = matrix(40, 30)
    chromium.execute_script(DROP, "phi.npy", base64.b64encode(npy(phi)).decode())
    compare(state(chromium, ".your-matrix"), phi)
    assert len(chromium.find_elements("css selector", ".ym-line")) == 2
    chromium.execute_script(DROP, "bad.csv", base64.b64encode(b"1,2,3\n4,5,x\n").decode())
    assert "is not a number" in state(chromium, ".your-matrix")["refused"]
    assert_whole(chromium)
