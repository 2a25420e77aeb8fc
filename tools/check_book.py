"""Check a built book: links lead somewhere, images have alternative text, no code leaks,
and the page of the library has every public name.

python tools/check_book.py _build/html
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from spectral_moments.public_names import PUBLIC


class Page(HTMLParser):
    "Anchors, links, what is loaded from elsewhere, images and visible text of one page."

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.remote, self.images = set(), [], [], []
        self.text, self.hidden = [], 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.hidden += tag in ("script", "style")
        self.anchors.update(attrs[key] for key in ("id", "name") if attrs.get(key))
        if "stderr" in (attrs.get("class") or "").split():
            self.text.append("output on stderr ")
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if tag == "img":
            self.images.append(attrs)
        source = attrs.get("src") or attrs.get("href") or ""
        if tag in ("script", "link", "img") and source.startswith(("http:", "https:")):
            self.remote.append(source)

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.hidden:
            self.text.append(data)


def problems(root):
    pages = {
        path: Page(path) for path in root.rglob("*.html") if "_static" not in path.parts
    }
    for path, page in pages.items():
        yield from ((path, f"loads {x} from the network") for x in page.remote)
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.exists():
                yield path, f"dead link {link}"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield path, f"dead anchor {link}"
        for img in page.images:
            alt = img.get("alt")
            if not alt or alt.startswith(("../_images", "_images")):
                yield path, f"image {img.get('src')} has no alternative text"
        text = "".join(page.text)
        leaks = ("#| ", "output on stderr ", "Traceback (most recent call last)")
        for mark in (*leaks, "| --- |", "| — |"):  # the last two: a table as its source
            if mark in text:
                yield path, f"shows {mark!r}"


def missing_names(root):
    page = root / "nbs" / "api.html"
    anchors = Page(page).anchors
    for name in PUBLIC:
        if f"spectral_moments.{name}" not in anchors:
            yield page, f"{name} is public and is not on it"


if __name__ == "__main__":
    root = Path(sys.argv[1]).resolve()
    found = [
        f"{path.relative_to(root)}: {what}"
        for path, what in (*problems(root), *missing_names(root))
    ]
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(f"{len(found)} problems in the book" if found else 0)
