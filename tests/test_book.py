"""The sources of the book: equations, and chapters that need not run twice."""

import importlib.util
import json
import re

import pytest
from conftest import ROOT

PAGES = sorted([*ROOT.glob("nbs/*.ipynb"), *ROOT.glob("nbs/*.md")])


def prose(path):
    "The markdown of a page, cell by cell."
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return [text]
    cells = json.loads(text)["cells"]
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]


def crowded(text):
    "Displayed equations that are part of a paragraph: they lose their label silently."
    for found in re.finditer(r"\$\$.*?\$\$(?: \(\S+\))?", text, re.DOTALL):
        before, after = text[: found.start()], text[found.end() :]
        alone = re.search(r"(\A|\n[ \t]*\n)[ \t]*\Z", before)
        if not alone or not re.match(r"\s*\Z|[ \t]*\n[ \t]*(\n|```|:::)", after):
            yield found[0]


def test_equations_have_a_paragraph_of_their_own():
    found = [(p.name, x) for p in PAGES for text in prose(p) for x in crowded(text)]
    assert PAGES and found == []


def test_crowded_equations_are_noticed():
    good = "We have\n\n$$\na\n$$ (eq-a)\n\n```{prf:lemma}\n:label: b\n\n$$ b $$\n```\n"
    assert [*crowded(good)] == []
    for bad in ("We have\n$$ a $$\n\n", "$$\na\n$$ (eq-a)\nholds", "so $$a$$ holds"):
        assert len([*crowded(bad)]) == 1


def test_a_chapter_that_changed_runs_again(tmp_path, monkeypatch):
    pytest.importorskip("nbclient")
    spec = importlib.util.spec_from_file_location("chapters", ROOT / "_ext/chapters.py")
    chapters = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(chapters)
    monkeypatch.setattr(chapters, "RAN", tmp_path / "ran")
    page, cell = (
        tmp_path / "page.ipynb",
        {"cell_type": "markdown", "metadata": {}, "id": "a"},
    )
    write = lambda words: page.write_text(
        json.dumps(dict(cells=[cell | {"source": words}], metadata={}, nbformat=4))
    )
    monkeypatch.setattr(chapters.NotebookClient, "execute", lambda self: None)
    write("first")
    assert not chapters.ran(page)
    chapters.executed(page)
    assert chapters.ran(page)
    write("second")
    assert not chapters.ran(page)
