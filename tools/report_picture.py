"""Take the picture of a report that the README shows.

python tools/report_picture.py    writes _static/report.png

The page is the one that the chapter on the report writes (run it, or `make book`, first).
Needs chromium and its driver. The ground is opaque, so that the picture can be read on a
light page and on a dark one.
"""

import base64
from pathlib import Path

import look

ROOT = Path(__file__).parents[1]
PAGE, FILE = ROOT / "_build/html/nbs/cortex_report.html", ROOT / "_static/report.png"
PLACE = """
const all = [...document.querySelectorAll("article")];
const one = all.find(e => e.querySelector("h2").textContent === arguments[0]);
const from = one.querySelector("header").getBoundingClientRect();
const to = one.querySelector("section").getBoundingClientRect();
const height = to.bottom - from.top + 42;
return [from.left - 30, scrollY + from.top - 24, from.width + 60, height];
"""


def main(name="IT, Tito", width=1060):
    browser = look.driver()
    look.look(browser, PAGE, width, "light")
    clip = dict(zip(("x", "y", "width", "height"), browser.execute_script(PLACE, name)))
    options = {"captureBeyondViewport": True, "clip": clip | {"scale": 1}, "format": "png"}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", options)
    FILE.write_bytes(base64.b64decode(shot["data"]))
    browser.quit()


if __name__ == "__main__":
    main()
