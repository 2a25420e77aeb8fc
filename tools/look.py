"""Look at every page of the built book in a browser, wide and narrow, light and dark.

python tools/look.py _build/html [screenshots]

Needs chromium and its driver, which `.ci/run` installs where there is apt. Lists what
sticks out of the page, raw LaTeX, failed equations, broken images and text of little
contrast, and saves a screenshot of each page if a folder is given. Ends with status 1 if it
finds anything.
"""

import base64
import shutil
import sys
from pathlib import Path

from selenium import webdriver

WIDTHS, THEMES = (1300, 390), ("light", "dark")
MEASURE = Path(__file__).with_suffix(".js").read_text()


def driver():
    options = webdriver.ChromeOptions()
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    return webdriver.Chrome(options=options, service=service)


def look(browser, page, width, theme, picture=None):
    "What is wrong with one page; a screenshot of all of it if a path is given."
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())
    browser.execute_script(f"document.documentElement.dataset.theme = '{theme}'")
    browser.execute_script("for (const i of document.images) i.loading = 'eager'")
    browser.execute_script(
        "document.head.append(Object.assign(document.createElement('style'),"
        "{textContent: '* { transition: none !important; animation: none !important; }'}))"
    )
    browser.execute_async_script(
        "const done = () => setTimeout(arguments[0], 300);"
        "Promise.resolve(window.MathJax?.startup?.promise).then(done)"
    )
    found, faint = browser.execute_script(MEASURE)
    if picture:
        height = browser.execute_script("return document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 16000), "scale": 1}
        options = {"captureBeyondViewport": True, "clip": clip, "format": "png"}
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", options)
        picture.write_bytes(base64.b64decode(shot["data"]))
    return list(dict.fromkeys(found)) + faint


def main(root, pictures=None):
    root, count = Path(root).resolve(), 0
    pages = [p for p in sorted(root.rglob("*.html")) if "_static" not in p.parts]
    browser = driver()
    for page in pages:
        for width in WIDTHS:
            for theme in THEMES:
                name = f"{page.stem}-{width}-{theme}.png"
                picture = Path(pictures) / name if pictures else None
                for what in look(browser, page, width, theme, picture):
                    print(f"{page.relative_to(root)} {width} {theme}: {what}", flush=True)
                    count += 1
    browser.quit()
    return f"{count} things to look at" if count else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
