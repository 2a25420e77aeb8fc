"""The page element "Cycles to touch": its numbers are those of the library.

The formulas run under node, the page in a headless Chromium; each half is skipped where the
program is not installed.
"""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest
from conftest import ROOT

import spectral_moments as sm
from spectral_moments.teaching.cycles import cycle_product, mean_over_increasing

SCRIPT = ROOT / "_static/cycles.js"
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")


def node(expression, script=SCRIPT, prelude="const plain = null;"):
    "Value of an expression in the formulas `c` of a page, as JSON."
    code = f"const c = require({json.dumps(str(script))}); {prelude}"
    code += f"console.log(JSON.stringify({expression}, plain))"
    done = subprocess.run(["node", "-e", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_node
@pytest.mark.parametrize("shape", [(6, 9), (9, 6), (5, 5)])
def test_numbers_of_the_page(shape):
    "Estimates, a cycle that meets itself, the mean over staircases, an expectation."
    names = ["naive", "kvRow", "kvCol", "increasing"]
    numbers = ["m", *(f"c.{name}(m, 4)" for name in names)]
    numbers += ["c.cycleProduct(m, [4, 0, 4], [1, 2, 4])", "c.kvExpectation(5, 2, 4)"]
    each = ", ".join(str(h) for h in range(shape[0]))
    numbers += [f"[{each}].map((h) => c.closed(m, c.staircases(m, h, 3)[3], h))"]
    drawn = f"c.drawLinear({shape[0]}, {shape[1]}, 3, c.generator(4))"
    phi, *found = node(f"((m) => [{', '.join(numbers)}])({drawn})")
    phi = np.array(phi)
    expected = sm.naive(phi, 4), sm.kong_valiant(phi, 4)
    expected += sm.kong_valiant(phi, 4, sampled="columns"), sm.increasing(phi, 4)
    np.testing.assert_allclose(found[:4], expected, rtol=1e-10)
    product = cycle_product(phi, (4, 0, 4), (1, 2, 4))
    np.testing.assert_allclose(found[4:6], [product, (1 + 5 / 5) / 4], rtol=1e-12)
    mean = sum(found[6]) / math.prod(math.comb(size, 3) for size in shape)
    np.testing.assert_allclose(mean, mean_over_increasing(phi, 3), rtol=1e-11)


# ------------------------------------------------------------------------------- the page
HARNESS = """<!doctype html><html data-theme="light"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="{css}"></head><body style="margin: 1rem">
<div class="cycles-touch" data-part="walk"></div>
<div class="cycles-touch" data-part="spread"></div>
<div class="cycles-touch" data-part="sweep"></div>
<script src="{js}"></script></body></html>"""


def state(browser, selector, key="state"):
    "What a part of the page has found, once it is ready."
    from selenium.webdriver.support.ui import WebDriverWait

    query = f"return document.querySelector('{selector}').dataset.{key} || ''"
    return json.loads(WebDriverWait(browser, 60).until(lambda b: b.execute_script(query)))


def assert_whole(browser):
    "On a telephone nothing sticks out, nothing is fetched, no script fails."
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    fetched = "return performance.getEntriesByType('resource').map((e) => e.name)"
    assert all(name.startswith("file:") for name in browser.execute_script(fetched))
    assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []


def test_page(chromium, tmp_path):
    page = tmp_path / "cycles.html"
    css, js = SCRIPT.with_suffix(".css").as_uri(), SCRIPT.as_uri()
    page.write_text(HARNESS.format(css=css, js=js))
    chromium.get(page.as_uri())
    walk, sweep = (state(chromium, f"[data-part={part}]") for part in ("walk", "sweep"))
    product = cycle_product(np.array(walk["phi"]), walk["rows"], walk["columns"])
    assert walk["value"] == pytest.approx(product, rel=1e-12)
    assert state(chromium, "[data-part=spread]", "done")["expected"]["increasing"] == 1
    assert len(sweep["estimates"]) == 3
    assert_whole(chromium)
