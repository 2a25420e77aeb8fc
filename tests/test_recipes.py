"""The page of recipes: every block runs, in order, in one empty folder."""

import contextlib
import doctest
import importlib.util
import io
import re
import shlex

import pytest
from conftest import ROOT

from spectral_moments.io.command_line import main
from spectral_moments.io.files import OTHERS

PAGE = (ROOT / "nbs" / "recipes.md").read_text(encoding="utf-8")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_python(code, names):
    "Run a block; what needs a library that is not installed is left out."
    needed = re.match(r"# needs (\w+)", code)
    if not needed or importlib.util.find_spec(needed[1]):
        exec(compile(code, "recipes.md", "exec"), names)


def run_shell(lines):
    "Run lines of the command."
    for line in lines.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "spectral-moments"
        assert main(arguments) in (None, 0), line


@pytest.mark.filterwarnings("ignore")
def test_recipes(tmp_path, monkeypatch):
    "Blocks run; what a block of text after one of code shows is printed."
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names, printed, checker = {}, "", doctest.OutputChecker()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, flags=re.M | re.S)
    assert {kind for kind, _ in blocks} == {"python", "sh", "text"}
    for kind, block in blocks:
        if kind == "text":
            shown = block.replace("±", "+-")  # as printed where there is no UTF-8
            assert checker.check_output(shown, printed, FLAGS), printed
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            run_python(block, names) if kind == "python" else run_shell(block)
        printed = out.getvalue().replace("±", "+-")


def test_lines_for_other_files():
    for ending, line in OTHERS.items():
        assert f"`{ending}`" in PAGE and f"`phi = {line}`" in PAGE


def test_links_of_the_readme():
    "Pages that the README links to are in the book, and sections are on the page."
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    titles = re.findall(r"^### (.*)$", PAGE, flags=re.M)
    anchors = {re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") for title in titles}
    links = re.findall(r"/nbs/(\w+)\.html(?:#([\w-]+))?\)", text)
    assert {anchor for _, anchor in links if anchor} == anchors
    pages = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    for page, _ in links:
        assert f"nbs/{page}\n" in pages, page
    assert (ROOT / "_static" / "readme.png").exists()
