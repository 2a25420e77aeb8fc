"""The page "Your own matrix": its numbers are those of the library.

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


def text(phi):
    "A matrix with commas."
    return "\n".join(",".join(map(repr, row)) for row in phi.tolist())


SHAPES = (5, 3), (12, 9), (9, 60), (40, 30), (101, 50), (150, 120), (600, 20)


@needs_node
def test_numbers_are_those_of_the_library(tmp_path):
    given = [matrix(*shape) for shape in SHAPES]
    given += [np.random.default_rng(k).normal(size=(20, 30)) for k in range(4)]  # no limit
    given += [1e60 * given[1], given[1] + 1e4]
    contents = [npy(x) for x in given]
    given += [given[2].T, given[2].astype("<f4").astype(float), given[0]]
    names = ",".join("abc")
    contents += [npy(given[2].T), npy(given[2].astype(">f4"))]  # by columns, big-endian
    contents += [(names + "\n" + text(given[0])).encode()]
    files = saved(tmp_path, contents)
    found = node(f"{files}.map((name) => c.dimension(c.readBytes(bytes(name))))")
    for phi, numbers in zip(given, found, strict=True):
        compare(numbers, phi, rtol=1e-6 if 1e3 < abs(phi.mean()) < 1e9 else 1e-8)
    assert any(numbers["high"] == "Infinity" for numbers in found)


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
