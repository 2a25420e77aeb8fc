"""The front page says how long its paths take, and `tools/paths.py` holds it to that."""

import importlib.util
import re

import pytest
from conftest import ROOT

FRONT = """<section id="three-paths"><p><strong>Ten minutes: use it.</strong>{how}
<a class="internal" href="page.html">a page</a> ({said} min; skip
<a class="internal" href="page.html#noise">noise</a>),
<a class="internal" href="x.html">x</a>
</p></section>"""
PAGE = """<article><section id="main"><p>{words} <span class="math">x</span></p>
<div class="math">y</div><div class="proof theorem"><p>one two</p></div>
<div class="proof"><p>{words}</p><div class="math">z</div></div>
<div class="exercise">{words}</div>
<div class="cell"><pre>code</pre><div class="cell_output"><pre>output</pre></div></div>
<div class="cell"><details><pre>folded</pre></details><img></div>
<div class="cell"><details><pre>folded</pre></details>
<div class="cell_output"><pre>1</pre></div></div></section>
<section id="noise"><p>{words}</p></section></article>"""


@pytest.fixture
def paths():
    spec = importlib.util.spec_from_file_location("paths", ROOT / "tools/paths.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def book(folder, how="", said=5, words=180):
    (folder / "nbs").mkdir(exist_ok=True)
    (folder / "nbs/index.html").write_text(FRONT.format(how=how, said=said))
    (folder / "nbs/page.html").write_text(PAGE.format(words="word " * words))
    return folder


def test_what_is_counted(paths, tmp_path):
    ((_, ((name, said, found),)),) = paths.paths(book(tmp_path))
    expected = dict(words=185, proofs=180, formulas=2, code=1, outputs=1, figures=1)
    assert (name, said, dict(found)) == ("page", 5, expected)
    assert paths.minutes(found) == pytest.approx(185 / 180 + 2 + 1 + 2 / 3 + 1 / 6 + 1 / 2)
    ((_, ((_, _, found),)),) = paths.paths(book(tmp_path, "Without the proofs:"))
    assert found == expected | dict(proofs=0, formulas=1)


def test_promises(paths, tmp_path):
    assert not list(paths.problems(book(tmp_path)))
    ((_, what),) = paths.problems(book(tmp_path, said=8))
    assert what == "page takes 5 minutes, not 8"
    ((_, what),) = paths.problems(book(tmp_path, said=13, words=720))
    assert "1 stops take 14 minutes" in what


def test_the_core_path_is_short():
    spec = importlib.util.spec_from_file_location("words", ROOT / "tools/words.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = "one $x$ two\n```{prf:proof}\n:class: dropdown\nno\n```\n$$\ny\n$$ (eq-y)\nthree"
    assert module.count(module.visible(text)) == 6
    found = module.core(ROOT / "nbs")
    assert min(found.values()) > 300 and sum(found.values()) < module.LIMIT, found


def test_chapters_have_the_numbers_of_their_files():
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    numbers = [int(n) for n in re.findall(r"^ {6}- file: nbs/(\d+)_", toc, re.M)[:18]]
    assert numbers == list(range(1, 19))


def test_proofs_are_folded_by_one_rule():
    "A proof has no title, and the class `dropdown` without one stops the page's script."
    for path in (ROOT / "nbs").glob("*.ipynb"):
        assert '{prf:proof}\\n",\n    ":class: dropdown' not in path.read_text("utf-8"), (
            path
        )
