"""The sources of the book: contents, equations, folds, and chapters that ran already."""

import importlib.util
import json
import re

import pytest
import yaml
from conftest import ROOT

PAGES = sorted([*ROOT.glob("nbs/*.ipynb"), *ROOT.glob("nbs/*.md")])


def prose(path):
    "The markdown of a page, cell by cell."
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return [text]
    cells = json.loads(text)["cells"]
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]


def listed(entries):
    "Files of the table of contents, chapters and their sections."
    for entry in entries:
        yield entry["file"]
        yield from listed(entry.get("sections", []))


def test_contents():
    "Every page is in the contents once; the number of a chapter is that of its file."
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text())
    files = [file for part in contents["parts"] for file in listed(part["chapters"])]
    pages = {str(path.relative_to(ROOT).with_suffix("")) for path in PAGES}
    assert sorted([*files, contents["root"]]) == sorted(pages)
    numbers = [x["file"] for part in contents["parts"] for x in part["chapters"]]
    numbers = [re.match(r"nbs/(\d+)_", file) for file in numbers]
    numbers = [int(number[1]) for number in numbers if number]
    assert numbers == list(range(1, 21))


def crowded(text):
    "Displayed equations that are part of a paragraph: they lose their label silently."
    for found in re.finditer(r"\$\$.*?\$\$(?: \(\S+\))?", text, re.DOTALL):
        before, after = text[: found.start()], text[found.end() :]
        alone = re.search(r"(\A|\n[ \t]*\n)[ \t]*\Z", before)
        if not alone or not re.match(r"\s*\Z|[ \t]*\n[ \t]*(\n|```|:::)", after):
            yield found[0]


def test_equations_have_a_paragraph_of_their_own():
    good = "We have\n\n$$\na\n$$ (eq-a)\n\n```{prf:lemma}\n:label: b\n\n$$ b $$\n```\n"
    assert [*crowded(good)] == []
    for bad in ("We have\n$$ a $$\n\n", "$$\na\n$$ (eq-a)\nholds", "so $$a$$ holds"):
        assert len([*crowded(bad)]) == 1
    found = [(p.name, x) for p in PAGES for text in prose(p) for x in crowded(text)]
    assert PAGES and found == []


@pytest.fixture
def chapters():
    pytest.importorskip("nbclient")
    spec = importlib.util.spec_from_file_location("chapters", ROOT / "_ext/chapters.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "label"),
    [
        ("import sys\nimport numpy as np", "imports and set-up"),
        ("def f(x):\n    return x\n\n\nassert f(1) == 1", "f"),
        ("x = 1\ny = 2\nz = 3\nassert x < y", "checks"),
    ],
)
def test_folds_are_labelled(chapters, source, label):
    meta = {"tags": ["hide-input"]}
    cell = {"cell_type": "code", "metadata": meta, "source": source}
    (found,) = chapters.with_labels({"cells": [cell]})["cells"]
    assert found["metadata"]["mystnb"]["code_prompt_show"] == f"Code: {label}"


def test_a_chapter_that_changed_runs_again(chapters, tmp_path, monkeypatch):
    monkeypatch.setattr(chapters, "RAN", tmp_path / "ran")
    monkeypatch.setattr(chapters.NotebookClient, "execute", lambda self: None)
    page = tmp_path / "page.ipynb"
    cell = {"cell_type": "markdown", "metadata": {}, "id": "a"}
    write = lambda words: page.write_text(
        json.dumps(dict(cells=[cell | {"source": words}], metadata={}, nbformat=4))
    )
    write("first")
    assert not chapters.ran(page)
    chapters.executed(page)
    assert chapters.ran(page)
    write("second")
    assert not chapters.ran(page)
