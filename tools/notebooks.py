"""Keep notebooks and exported modules in step.

python tools/notebooks.py clean    strip outputs and metadata from nbs/
python tools/notebooks.py export   write spectral_moments/ from nbs/
python tools/notebooks.py check    fail, with a diff, if either would change anything
"""

import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def run(command, root):
    # --fname and friends are relative: nbdev finds settings.ini from the working directory
    subprocess.run(
        [str(BIN / command)],
        cwd=root,
        check=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )


def drop_outputs(path):
    "Remove outputs: `nbdev_clean` keeps them, unless it drops the cell tags too."
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    text = json.dumps(notebook, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    if text != path.read_text(encoding="utf-8"):
        path.write_text(text, encoding="utf-8")


def clean(root):
    for path in sorted((root / "nbs").glob("*.ipynb")):
        drop_outputs(path)
    run("nbdev_clean", root)


def export(root):
    run("nbdev_export", root)


def check():
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copy(ROOT / "settings.ini", copy)
        for name in ("nbs", "spectral_moments"):
            shutil.copytree(
                ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".*")
            )
        clean(copy)
        export(copy)
        names = {
            p.relative_to(r)
            for r in (ROOT, copy)
            for d in ("nbs", "spectral_moments")
            for p in (r / d).rglob("*")
            if p.suffix in (".ipynb", ".py", ".pyi")
        }
        changed = [name for name in sorted(names) if not same(ROOT / name, copy / name)]
    if changed:
        sys.exit(
            f"not clean or not in sync: {', '.join(map(str, changed))}\n"
            "Run `make export` and commit the result."
        )
    print(f"{len(names)} notebooks and modules are clean and in sync")


def same(ours, fresh):
    old, new = (
        p.read_text(encoding="utf-8").splitlines() if p.exists() else []
        for p in (ours, fresh)
    )
    diff = list(
        difflib.unified_diff(
            old, new, str(ours.name), f"{fresh.name} (expected)", lineterm="", n=1
        )
    )
    print(*diff[:40], sep="\n", end="\n" if diff else "")
    return not diff


if __name__ == "__main__":
    if not sys.argv[1:] or not set(sys.argv[1:]) <= {"clean", "export", "check"}:
        sys.exit(__doc__)
    for action in sys.argv[1:]:
        check() if action == "check" else {"clean": clean, "export": export}[action](ROOT)
