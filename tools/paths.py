"""How long the paths of the front page are, and whether it says so.

python tools/paths.py _build/html

A link of a path that is followed by minutes in parentheses is a stop; a link after "skip"
leaves a section of it out. Prints for each stop its words, formulas, code, figures and
minutes. Minutes that a page does not keep to a fifth, or to two, are a problem of the book
(`tools/check_book.py`). Exercises and folded code are not counted.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from bs4 import BeautifulSoup

WORDS = 180  # a minute; in a proof half as many
INLINE = 3  # words that a formula within a line stands for
MINUTES = {"words": 1 / WORDS, "proofs": 2 / WORDS, "formulas": 0.5, "code": 2 / 3}
MINUTES |= {"outputs": 1 / 6, "figures": 0.5}  # outputs: those of folded code
PROOF = "div.proof:not(.theorem, .lemma, .definition), details.sd-dropdown"
PROOF += ", div.admonition.dropdown:not(.solution)"  # all that is folded
LEFT_OUT = ".exercise, .solution, .headerlink, .prev-next-area, script, style"
FRONT = "nbs/index.html"
PROMISED = {"Ten minutes": 10, "An hour and a quarter": 75, "An afternoon": 240}


def take(body, selector):
    "The nodes that match, removed from the page."
    return [node.extract() for node in body.select(selector)]


def words(node):
    "Words of a text, formulas within its lines included."
    formulas = take(node, "span.math")
    return len(re.findall(r"\w[\w'’.-]*", node.get_text(" "))) + INLINE * len(formulas)


def count(page, section="", skip=(), proofs=True):
    "What a page, or a section of it, holds for a reader, as a Counter."
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    body = soup.find(id=section) if section else soup.find("article")
    for selector in (LEFT_OUT, *(f"section[id={name}]" for name in skip)):
        take(body, selector)
    proven = take(body, PROOF)
    read = [body, *proven] if proofs else [body]
    found = Counter(formulas=sum(len(take(part, "div.math")) for part in read))
    found["proofs"] = sum(map(words, read[1:]))
    found["figures"] = len(body.select("img, .cycles-touch"))
    for cell in body.select("div.cell"):
        folded = cell.select("details") or "tag_remove-input" in cell["class"]
        kind = "outputs" if folded else "code"
        found[kind] += bool(take(cell, ".cell_output pre") or not folded)
    take(body, "div.cell pre, summary")
    found["words"] = words(body)
    return found


def minutes(found):
    return sum(MINUTES[kind] * number for kind, number in found.items())


def paths(root):
    "For each path its name and its stops: name, minutes that are promised, what is there."
    front = root / FRONT
    soup = BeautifulSoup(front.read_text(encoding="utf-8"), "html.parser")
    for entry in soup.find(id="three-paths").find_all("p", recursive=False):
        proofs, stops = "without the proofs" not in entry.get_text().lower(), []
        for link in entry.select("a.internal"):
            name, _, section = link["href"].partition("#")
            said = re.match(r"\s*\((\d+)", str(link.next_sibling))
            if said:
                stops.append([name, section, int(said[1]), []])
            elif str(link.previous_sibling).rstrip().endswith("skip"):
                stops[-1][3].append(section)
        yield (
            entry.strong.get_text().partition(":")[0],
            [
                (
                    f"{Path(name).stem} {section}".strip(),
                    said,
                    count(front.parent / name, section, skip, proofs),
                )
                for name, section, said, skip in stops
            ],
        )


def problems(root):
    "Promises of the front page that its pages do not keep."
    for path, stops in paths(root):
        for name, said, found in stops:
            if abs(said - minutes(found)) > max(2, said / 5):
                yield root / FRONT, f"{name} takes {minutes(found):.0f} minutes, not {said}"
        total = sum(minutes(found) for *_, found in stops)
        if not stops or total > 1.2 * PROMISED[path]:
            yield root / FRONT, f"{path}: {len(stops)} stops take {total:.0f} minutes"


if __name__ == "__main__":
    for path, stops in paths(Path(sys.argv[1]).resolve()):
        print(path)
        for name, said, found in stops:
            numbers = "  ".join(f"{kind} {found[kind]}" for kind in MINUTES)
            print(f"  {name:40s}{minutes(found):5.1f} of {said}:  {numbers}")
        print(f"  {'':40s}{sum(minutes(found) for *_, found in stops):5.1f}")
