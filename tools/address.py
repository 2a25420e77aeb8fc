"""Write the addresses of pyproject.toml into the links of README.md and CITATION.cff.

python tools/address.py            write them
python tools/address.py --check    fail if a link has another address
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ("README.md", "CITATION.cff")


def with_addresses(text, urls):
    "Return a text whose links to the book and to the repository have these addresses."
    book, source = urls["Documentation"], urls["Source"]
    text = re.sub(r"https://[^\s()]+?(?=/(nbs|_static)/)", book, text)
    text = re.sub(r"https://[^\s()]+?(?=/(blob/main/|issues\)))", source, text)
    return re.sub(r"(?<=repository-code: )\S+", source, text)


def main():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    for name in FILES:
        text = (ROOT / name).read_text(encoding="utf-8")
        new = with_addresses(text, project["urls"])
        if "--check" in sys.argv[1:] and new != text:
            raise SystemExit(
                f"{name} has other addresses than pyproject.toml: make address"
            )
        (ROOT / name).write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
