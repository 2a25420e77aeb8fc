"""The page of the paper's claims: each has a verdict, and a link to what decides it."""

import json
import re

from conftest import ROOT

PAGE = (ROOT / "nbs/claims.md").read_text("utf-8")
VERDICTS = ("Confirmed", "Corrected", "Open")


def entries():
    "(verdict, claim, links) of every claim on the page."
    for part in PAGE.split("\n## ")[1:]:
        for claim, verdict, text in re.findall(
            r"(?m)^(\S.*)\n: \*\*(\w+)\.\*\* (.*)$", part
        ):
            yield verdict, claim, re.findall(r"\]\(([^)]+)\)", text)
        for claim in re.findall(r"(?m)^- (.*)$", part):
            yield "Confirmed", claim, re.findall(r"\]\(([^)]+)\)", claim)


def slug(heading):
    "The anchor that Sphinx makes of a heading."
    text = re.sub(r"[^\w\- ]", "", heading.lower().replace("$", ""))
    return text.strip().replace(" ", "-")


def anchors(path):
    "Anchors of the headings of a page."
    text = path.read_text("utf-8")
    if path.suffix == ".ipynb":
        cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "markdown"]
        text = "\n".join("".join(c["source"]) for c in cells)
    return {slug(heading) for heading in re.findall(r"(?m)^#+ (.*)$", text)}


def test_count():
    found = [verdict for verdict, *_ in entries()]
    counts = [found.count(verdict) for verdict in VERDICTS]
    text = "Of {} claims {} are confirmed, {} corrected and {} open."
    assert text.format(len(found), *counts) in PAGE and set(found) == set(VERDICTS)


def test_every_claim_links_to_what_decides_it():
    for _, claim, links in entries():
        assert links, claim
        for link in links:
            file, _, anchor = link.partition("#")
            path = ROOT / "nbs" / (file or "claims.md")
            assert path.exists() and (not anchor or anchor in anchors(path)), (claim, link)


def test_links_within_the_page():
    for anchor in re.findall(r"\]\(#([^)]+)\)", PAGE):
        assert anchor in anchors(ROOT / "nbs/claims.md"), anchor
