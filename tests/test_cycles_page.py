"""The page element "Cycles to touch": its numbers are those of the library.

The formulas run under node, the page in a headless Chromium; each half is skipped where the
program is not installed.
"""

import itertools
import json
import math
import shutil
import subprocess

import numpy as np
import pytest
from conftest import ROOT

import spectral_moments as sm
from spectral_moments.benchmarking import COMPARED
from spectral_moments.processes import Linear
from spectral_moments.teaching.cycles import cycle_product, mean_over_increasing

SCRIPT = ROOT / "_static/cycles.js"
ESTIMATORS = {name: f for name, f in COMPARED.items() if name != "all_cycles"}
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
def test_estimators_of_the_page(shape):
    draws = f"c.drawLinear({shape[0]}, {shape[1]}, 3, c.generator(4))"
    names = ["naive", "kvRow", "kvCol", "increasing"]
    phi, *found = node(f"((m) => [m, {', '.join(f'c.{f}(m, 4)' for f in names)}])({draws})")
    phi = np.array(phi)
    assert phi.shape == shape
    expected = [estimator(phi, 4) for estimator in ESTIMATORS.values()]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@needs_node
def test_cycles_and_staircases():
    source = "c.drawLinear(5, 6, 2, c.generator(1))"
    phi, product, S, closed = node(
        f"((m) => [m, c.cycleProduct(m, [4, 0, 4], [1, 2, 5]),"
        " c.staircases(m, 1, 3).slice(1),"
        f" [0, 1, 2, 3, 4].map((h) => c.closed(m, c.staircases(m, h, 3)[3], h))])({source})"
    )
    phi, S = np.array(phi), np.array(S)
    direct = cycle_product(phi, (4, 0, 4), (1, 2, 5))
    np.testing.assert_allclose(product, direct, rtol=1e-13)
    for a, b in itertools.product(range(5), range(6)):
        turns = itertools.product(range(2, a), itertools.combinations(range(b), 2))
        steps = (phi[1, k] * phi[i, k] * phi[i, j] * phi[a, j] for i, (k, j) in turns)
        direct = sum(steps) * phi[a, b]
        np.testing.assert_allclose(S[2, a, b], direct, rtol=1e-12, atol=1e-14)
    mean = sum(closed) / (math.comb(5, 3) * math.comb(6, 3))
    np.testing.assert_allclose(mean, mean_over_increasing(phi, 3), rtol=1e-12)


def wishart(P, Q, n):
    "Expected trace of the n-th power of X X', X of P x Q independent normal numbers."
    s, t = P + Q, P * Q
    return t * (1, s + 1, s**2 + t + 3 * s + 4)[n - 1]


@needs_node
def test_expectations_of_naive():
    sizes = [(3, 5), (4, 4), (7, 2)]
    for n, (P, Q) in itertools.product((2, 3), sizes):
        # of rank one a matrix is x w', and both factors are sums of squares
        chi = [math.prod(N + 2 * j for j in range(n)) / N**n for N in (P, Q)]
        found = node(f"[1, 1e12].map((d) => c.naiveExpectation({P}, {Q}, {n}, d))")
        limit = wishart(P, Q, n) / (P * Q) ** n  # of high rank its entries are independent
        np.testing.assert_allclose(found, [math.prod(chi), limit], rtol=1e-10)
    assert node("c.naiveExpectation(6, 9, 2, 4)") != pytest.approx(1 / 4, rel=0.1)


@needs_node
def test_expectation_of_naive_by_simulation():
    rng, process = np.random.default_rng(1), Linear(4, scale=1 / 4)
    drawn = [sm.naive(process.sample(6, 9, rng), 4) for _ in range(4000)]
    mean, error = np.mean(drawn, axis=0), np.std(drawn, axis=0) / np.sqrt(len(drawn))
    exact = node("[1, 2, 3, 4].map((n) => c.naiveExpectation(6, 9, n, 4))")
    assert (abs(mean - exact) < 4 * error).all()
    assert (abs(mean - process.moments(4)) > 4 * error)[1:].all()  # negative control


@needs_node
def test_expectation_of_one_sided():
    for Q, d in itertools.product((2, 5, 9), (1, 4)):
        found = node(f"c.kvExpectation({Q}, 2, {d})")
        assert found == pytest.approx((1 + (d + 1) / Q) / d, rel=1e-12)
    rng, process = np.random.default_rng(2), Linear(4, scale=1 / 4)
    drawn = [process.sample(6, 9, rng) for _ in range(1500)]
    for side, N in (("rows", 9), ("columns", 6)):
        values = [sm.kong_valiant(phi, 4, sampled=side) for phi in drawn]
        mean, error = np.mean(values, axis=0), np.std(values, axis=0) / np.sqrt(len(drawn))
        exact = node(f"[1, 2, 3, 4].map((n) => c.kvExpectation({N}, n, 4))")
        assert (abs(mean - exact) < 4 * error).all()
        assert (abs(mean - process.moments(4)) > 4 * error)[1:].all()  # negative control


@needs_node
def test_shares_add_up():
    found = node(
        "[2, 3, 4].map((n) => c.patterns(n).flatMap((p) =>"
        " c.patterns(n).map((q) => c.share(p, q, 5, 7))).reduce((s, v) => s + v))"
    )
    np.testing.assert_allclose(found, 1, rtol=1e-12)


# ------------------------------------------------------------------------------- the page
HARNESS = """<!doctype html><html data-theme="light"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="{css}"></head><body style="margin: 1rem">
<div class="cycles-touch" data-part="walk"></div>
<div class="cycles-touch" data-part="spread"></div>
<div class="cycles-touch" data-part="sweep"></div>
<script src="{js}"></script></body></html>"""


@pytest.fixture(scope="module")
def browser(chromium, tmp_path_factory):
    page = tmp_path_factory.mktemp("page") / "cycles.html"
    css, js = SCRIPT.with_suffix(".css").as_uri(), SCRIPT.as_uri()
    page.write_text(HARNESS.format(css=css, js=js))
    chromium.get(page.as_uri())
    return chromium


def state(browser, part, key="state"):
    "What a part of the page knows, once it is ready."
    from selenium.webdriver.support.ui import WebDriverWait

    query = f"return document.querySelector('[data-part={part}]').dataset.{key} || ''"
    text = WebDriverWait(browser, 60).until(lambda b: b.execute_script(query))
    return json.loads(text)


def find(browser, selector):
    return browser.find_element("css selector", selector)


def slide(browser, selector, value):
    "Move a slider."
    script = f"arguments[0].value = {value}; arguments[0].dispatchEvent(new Event('input'))"
    browser.execute_script(script, find(browser, selector))


def number(text):
    return float(text.replace("\u2212", "-"))


def test_page_walk(browser):
    from selenium.webdriver.common.keys import Keys

    walk = state(browser, "walk")
    phi = np.array(walk["phi"])
    drawn = browser.find_elements("css selector", "[data-part=walk] .ct-cell text")
    np.testing.assert_array_equal([number(t.text) for t in drawn], phi.ravel())
    assert not walk["repeats"] and walk["expected"] == pytest.approx(walk["truth"])
    truth = Linear(walk["d"], scale=1 / walk["d"]).moments(2)[1]
    assert walk["truth"] == pytest.approx(truth)
    assert not browser.find_elements("css selector", ".ct-red")
    first = walk["rows"][0]
    while state(browser, "walk")["rows"][1] != first:  # up to the first corner's row
        find(browser, "[data-part=walk] [data-corner='2']").send_keys(Keys.ARROW_UP)
    met = state(browser, "walk")
    assert met["repeats"] and len(browser.find_elements("css selector", ".ct-red")) == 1
    product = cycle_product(phi, met["rows"], met["columns"])
    assert met["value"] == pytest.approx(product, rel=1e-12)
    d, (P, Q) = met["d"], phi.shape
    assert met["expected"] == pytest.approx(1 + 2 / d)  # E k(x, x)^2
    assert met["share"] == pytest.approx((Q - 1) / (P * Q))
    said = find(browser, "[data-part=walk] .ct-bad").text
    assert "i₁ = i₂" in said and "1 + 2/d" in said
    bias = met["share"] * (met["expected"] - met["truth"])
    assert number(said.rstrip(".").split()[-1]) == pytest.approx(bias, abs=1e-4)


def test_page_walk_by_touch(browser):
    cells = browser.find_elements("css selector", "[data-part=walk] .ct-cell")
    handle = find(browser, "[data-part=walk] [data-corner='1']")
    browser.execute_script("arguments[0].focus()", handle)
    columns = len(state(browser, "walk")["phi"][0])
    for i, a in ((5, 6), (2, 0)):  # one corner after the other
        cells[i * columns + a].click()
    walk = state(browser, "walk")
    assert (walk["rows"], walk["columns"]) == ([5, 2], [6, 0])
    for order, disjoint in (("3", True), ("4", True), ("4", False)):
        find(browser, f"[data-part=walk] [data-choice='{order}']").click()
        word = "disjoint" if disjoint else "repeating"
        buttons = browser.find_elements("css selector", "[data-part=walk] button")
        next(b for b in buttons if word in b.text).click()
        walk = state(browser, "walk")
        assert len(walk["rows"]) == int(order) and walk["repeats"] is not disjoint
        value = cycle_product(np.array(walk["phi"]), walk["rows"], walk["columns"])
        assert walk["value"] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("kind", ["mouse", "touch"])
def test_page_walk_by_drag(browser, kind):
    from selenium.webdriver.common.actions.action_builder import ActionBuilder
    from selenium.webdriver.common.actions.pointer_input import PointerInput

    find(browser, "[data-part=walk] [data-choice='2']").click()  # two corners, apart
    start = state(browser, "walk")
    columns = len(start["phi"][0])
    i, a = (4, 2) if kind == "mouse" else (1, 5)
    cells = browser.find_elements("css selector", "[data-part=walk] .ct-cell rect")
    handle = find(browser, "[data-part=walk] [data-corner='2'] .ct-finger")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", handle)
    builder = ActionBuilder(browser, mouse=PointerInput(kind, kind))
    builder.pointer_action.move_to(handle).pointer_down()
    builder.pointer_action.move_to(cells[i * columns + a]).pointer_up()
    builder.perform()
    walk = state(browser, "walk")
    assert (walk["rows"][1], walk["columns"][1]) == (i, a)
    assert (walk["rows"][0], walk["columns"][0]) == (start["rows"][0], start["columns"][0])


def test_page_spread(browser):
    slide(browser, "[data-part=spread] [data-name=n]", 3)
    done = state(browser, "spread", "done")
    assert done["n"] == 3
    P, Q, n, d = (done[key] for key in "PQnd")
    drawn = browser.execute_script(
        "const c = window.CyclesToTouch, r = c.generator(arguments[0]), all = [];"
        f"while (all.length < {done['draws']}) all.push(c.drawLinear({P}, {Q}, {d}, r));"
        "return all",
        done["seed"],
    )
    truth = Linear(d, scale=1 / d).moments(n)[n - 1]
    for name, estimator in ESTIMATORS.items():
        values = np.array([estimator(np.array(phi), n)[n - 1] for phi in drawn]) / truth
        mean, spread = values.mean(), values.std(ddof=1)
        told = dict(mean=mean, spread=spread, error=spread / np.sqrt(len(values)))
        for key, value in told.items():
            shown = find(browser, f"[data-method={name}] [data-key={key}]").text
            assert number(shown) == pytest.approx(value, abs=6e-4)
        exact = number(find(browser, f"[data-method={name}] [data-key=exact]").text)
        assert exact == pytest.approx(done["expected"][name], abs=6e-4)
        assert abs(values.mean() - exact) < 4 * values.std() / np.sqrt(len(values))
        z = (values.mean() - 1) / (values.std() / np.sqrt(len(values)))
        assert abs(z) < 4 if name == "increasing" else z > 4


def test_page_sweep(browser):
    button = find(browser, "[data-part=sweep] [aria-label='one entry on']")
    for _ in range(3):
        button.click()
    sweep = state(browser, "sweep")
    assert sweep["at"] == 3
    shown = browser.find_elements("css selector", "[data-part=sweep] figure")[2]
    numbers = [t.text for t in shown.find_elements("css selector", "text") if t.text]
    S = np.array(sweep["S"])
    np.testing.assert_allclose([*map(number, numbers)], S[1, 1, 1:4], atol=5.1e-3)
    slide(browser, "[data-part=sweep] [data-name=step]", "arguments[0].max")
    sweep = state(browser, "sweep")
    assert sweep["orders"] == [2, 3]
    expected = sm.increasing(np.array(sweep["phi"]), 3)
    np.testing.assert_allclose(sweep["estimates"], expected, rtol=1e-11)
    for n in (2, 3):
        said = find(browser, f"[data-part=sweep] [data-order='{n}']").text
        shown = number(said.rstrip(".").split()[-1])
        assert shown == pytest.approx(expected[n - 1], abs=6e-5)
    play = find(browser, "[data-part=sweep] [aria-label='play or pause']")
    assert not play.is_displayed()


def narrow(browser, theme):
    "Show the page in these colours, as a telephone does."
    browser.execute_script(f"document.documentElement.dataset.theme = '{theme}'")
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def assert_whole(browser):
    "Nothing sticks out, nothing was fetched from elsewhere, no script failed."
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    fetched = "return performance.getEntriesByType('resource').map((e) => e.name)"
    assert all(name.startswith("file:") for name in browser.execute_script(fetched))
    assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_is_whole(browser, theme):
    narrow(browser, theme)
    assert_whole(browser)


# --------------------------------------------------------------- comforts of all pages
PICTURE = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/%3E"
)
PAGE = """<!doctype html><html><head><meta charset="utf-8">
<link rel="stylesheet" href="{css}"></head><body><article class="bd-content">
<figure><img src="{picture}" alt="nine by nine"></figure>
<div class="pst-scrollable-table-container" style="width: 90px; overflow: auto">
<div style="width: 300px">wide</div></div>
<div class="pst-scrollable-table-container" style="width: 90px">narrow</div>
<p>A formula (<span class="math">x</span>). Another <span class="math">y</span> here.</p>
</article><script src="{js}"></script></body></html>"""


def test_figures_open_and_edges_fade(browser, tmp_path):
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    script = ROOT / "_static/book.js"
    page = tmp_path / "page.html"
    css = script.with_suffix(".css").as_uri()
    page.write_text(PAGE.format(css=css, js=script.as_uri(), picture=PICTURE))
    browser.get(page.as_uri())
    find(browser, "figure img").send_keys(Keys.ENTER)
    assert find(browser, "dialog img").get_attribute("alt") == "nine by nine"
    find(browser, "dialog").send_keys(Keys.ESCAPE)
    closed = lambda b: not b.find_elements("css selector", "dialog")
    WebDriverWait(browser, 10).until(closed)
    kept = browser.find_elements("css selector", ".keeps")  # no line ends within
    assert [span.text for span in kept] == ["(x)."]
    assert find(browser, "p").text == "A formula (x). Another y here."
    boxes = browser.find_elements("css selector", ".pst-scrollable-table-container")
    marks = [box.get_attribute("class").split()[1:] for box in boxes]
    assert marks == [["more-right"], []]
    browser.execute_script("arguments[0].scrollLeft = 999", boxes[0])
    browser.execute_async_script("setTimeout(arguments[0], 200)")
    assert boxes[0].get_attribute("class").split()[1:] == ["more-left"]
