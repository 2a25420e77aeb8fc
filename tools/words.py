"""Words of visible prose on the core path: the front page to chapter 5, proofs folded.

python tools/words.py [nbs]

Counted as `tools/paths.py` counts a built page: captions too, a formula within a line as
three words; exercises, solutions, folded proofs, displayed formulas and code not at all.
Ends with status 1 if there are too many.
"""

import json
import re
import sys
from pathlib import Path

CORE = ["index", "01_operators", "02_plugin", "03_one_sided", "04_cycles", "05_variance"]
LIMIT = 5500
FENCE = re.compile(r"^(`{3,}|:{3,})\{([\w:-]+)\}(.*)$")
UNSEEN = {"exercise", "solution", "solution-start", "dropdown"}


def visible(text):
    "Markdown without the directives that are folded or left out, and without their marks."
    lines, inside, kept = text.splitlines(), [], []
    for k, line in enumerate(lines):
        fence = FENCE.match(line)
        if fence:
            folded = fence[2] in UNSEEN or lines[k + 1 : k + 3].count(":class: dropdown")
            inside.append((fence[1], bool(folded)))
            line = fence[3]
        elif inside and line.strip() == inside[-1][0]:
            inside.pop()
            continue
        if not any(folded for _, folded in inside) and not re.match(r":\w+:", line):
            kept.append(line)
    return "\n".join(kept)


def count(text):
    "Words of a text; links, formulas and references as they are read."
    text = re.sub(r"\$\$.*?\$\$( \(eq-[\w-]+\))?", " ", text, flags=re.S)
    text = re.sub(r"\$[^$]+\$", " x x x ", text)
    text = re.sub(r"\{[\w:]+\}`[^`]*`", " x ", text)
    text = re.sub(r"\]\([^)]*\)|<[^>]+>", " ", text)
    return len(re.findall(r"\w[\w'’.-]*", text))


def words(path):
    "Words of visible prose of one chapter."
    total, solving = 0, False
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] != "markdown":
            figure = cell["metadata"].get("mystnb", {}).get("figure", {})
            total += 0 if solving else count(figure.get("caption", ""))
            continue
        if solving and "{solution-end}" in text:
            text, solving = text.partition("{solution-end}\n```")[2], False
        if solving:
            continue
        solving = "{solution-start}" in text.rpartition("{solution-end}")[2]
        total += count(visible(text))
    return total


def core(nbs):
    "Words of each chapter of the core path."
    return {name: words(Path(nbs) / f"{name}.ipynb") for name in CORE}


if __name__ == "__main__":
    found = core(sys.argv[1] if len(sys.argv) > 1 else "nbs")
    for name, number in found.items():
        print(f"{name:14}{number:6}")
    total = sum(found.values())
    print(f"{'together':14}{total:6} of {LIMIT}")
    sys.exit(total > LIMIT)
