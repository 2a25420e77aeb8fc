"""Everything about one recording, or several compared, on one page."""

import io
import json
import math
import os
import re
import time
from collections.abc import Callable
from functools import cache
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike

import spectral_moments as sm

from ..checks import ArgumentError, check_count, check_numbers, check_options, printable
from ..results import describe_data

DATA_OPTIONS = ("center", "groups", "column_groups", "population", "noise", "trials")
LARGEST = 2**25  # entries of a matrix whose random parts are estimated
INK = "#0a0b0c"  # replaced by the colour of the text, light or dark
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "spectral_moments",
    **dict.fromkeys(["text.color", "axes.edgecolor", "axes.labelcolor"], INK),
    **dict.fromkeys(["xtick.color", "ytick.color"], INK),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.family": "sans-serif",
}


def draw_svg(result, title: str) -> str:
    "Return what `result.plot` draws as SVG, in the colour of the text around it."
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        ax = Figure(figsize=(5, 3.4), layout="constrained").subplots()
        result.plot(ax)
        ax.set_title("")
        file = io.StringIO()
        ax.figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = file.getvalue()
    svg = re.sub("<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    label = re.sub(r"[^\w ,.]", "", title)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    return svg.replace(INK, "currentColor").replace("#000000", "currentColor")


class Part(NamedTuple):
    "A section of the page."

    name: str  # of the recording; empty: about all of them
    title: str
    make: Callable  # returns a result of the library, or rows of a table
    costly: bool = False  # not begun when the time is over


def render(part: Part, end: float) -> dict:
    "Return figure and table of a part, or the reason why they are missing."
    shown = dict(name=part.name, title=part.title)
    try:
        if part.costly and time.monotonic() > end:
            raise RuntimeError("the time is over; pass more seconds")
        result = part.make()
        shown["rows"] = result if isinstance(result, list) else [*result.table_rows()]
        shown["notes"] = getattr(result, "notes", [])
        shown["figure"] = draw_svg(result, part.title) if hasattr(result, "plot") else ""
    except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
        shown["reason"] = printable(" ".join(str(error).split()))
    return shown


def more_data(est) -> list[list]:
    "Return the expected standard error of the dimension with four times as much data."
    P, Q = est.shape[1:]
    dimension, rows = est.dimension(), [["", "expected standard error"]]
    sizes = {"as it is": (P, Q), "four times as many inputs": (4 * P, Q)}
    sizes["four times as many features"] = P, 4 * Q
    sizes["four times as many of both"] = 4 * P, 4 * Q
    for name, size in sizes.items():
        rows.append([name, f"{dimension.expected_stderr(*size):.3g}"])
    return rows


def dimension_of_parts(est, phi, options: dict):
    "Return the dimension against size, from few random parts of a large matrix."
    entries = math.prod(est.shape)
    if entries > LARGEST:
        raise ValueError("the matrix is large; use sm.dimension_by_size with few draws")
    n_draws = int(np.clip(LARGEST / (8 * entries), 5, 20))
    return sm.dimension_by_size(phi, n_draws=n_draws, **options)


def parts_of(name: str, est, phi, options: dict):
    "Yield the parts about one recording; `phi` is None if only its moments are known."
    yield Part(name, "Moments", lambda: est)
    yield Part(name, "What more data would give", lambda: more_data(est))
    yield Part(name, "Spectrum", lambda: sm.feasible(est))
    yield Part(name, "Power law", lambda: sm.power_law(est))
    if phi is not None:
        make = lambda: dimension_of_parts(est, phi, options)
        yield Part(name, "Dimension of parts", make, costly=True)
    if phi is not None and est.shape[0] > 1:
        known = {k: x for k, x in options.items() if k not in ("trials", "noise")}
        make = lambda: sm.noise.noise_moments(phi, **known)
        yield Part(name, "Noise", make, costly=True)


def parts_together(estimates: dict, recordings: dict, paired, options: dict):
    "Yield the parts that compare several recordings."
    make = lambda: sm.compare(estimates, paired=paired)
    yield Part("", "Do the dimensions differ?", make)
    if paired == "inputs" and len(recordings) == len(estimates):
        aligned = cache(lambda: sm.alignments(recordings, **options))
        yield Part("", "Alignment", aligned, costly=True)
        make = lambda: aligned().permutation_test(199)
        yield Part("", "Is the alignment above chance?", make, costly=True)


def caveats(estimates: dict) -> list[str]:
    "Return the notes of all estimates, by name if there are several."
    found = []
    for name, est in estimates.items():
        dimension = est.dimension()
        remark = dimension.remark.splitlines()[1:]  # without what was measured
        for note in dict.fromkeys([*est.notes, *dimension.notes, *remark]):
            found.append(f"{name}: {note}" if len(estimates) > 1 else note)
    return found


def report(
    given: ArrayLike | dict,  # what `estimate` takes or returns; of several a dict by name
    path: str | os.PathLike = "report.html",  # file to write
    *,
    n_max: int = 4,  # highest order, at least 2
    title: str = None,  # of the page; None: the name of the only recording
    paired: str = None,  # what several share, in the same order: None, "inputs", "features"
    seconds: float = 60,  # after the moments; then no further costly part is begun
    **options,  # others of `estimate`
) -> Path:  # the file
    "Write everything about a recording on one page: sm.report(phi, 'report.html')."
    for package in ("jinja2", "matplotlib"):
        try:
            import_module(package)
        except ImportError:
            remedy = f"a report needs {package}; pip install 'spectral_moments[report]'"
            raise ImportError(remedy) from None
    title = title if title is None else str(title)
    named = given if isinstance(given, dict) else {title or "Recording": given}
    named = {printable(str(name)): x for name, x in named.items()}
    if not named:
        raise ArgumentError("given", "given must be a recording or a dict of recordings")
    if paired not in (None, "inputs", "features"):
        raise ArgumentError("paired", f"paired = {paired!r} is not 'inputs' or 'features'")
    check_options("report", options, [*signature(sm.estimate).parameters][2:])
    n_max = check_count(n_max, "n_max", least=2)
    seconds = float(check_numbers(seconds, "seconds"))
    recordings = {k: x for k, x in named.items() if not isinstance(x, sm.Estimate)}
    estimates = named | {k: sm.estimate(x, n_max, **options) for k, x in recordings.items()}
    end = time.monotonic() + seconds
    about = {k: x for k, x in options.items() if k in DATA_OPTIONS}
    parts = []
    if len(named) > 1:
        parts += parts_together(estimates, recordings, paired, about)
    for name, est in estimates.items():
        parts += parts_of(name, est, recordings.get(name), about)
    parts.sort(key=lambda part: part.costly)  # first what costs nothing
    title = title or (next(iter(named)) if len(named) == 1 else "Report")
    shown = [render(part, end) for part in parts]
    html = fill_template(estimates, title=printable(title), parts=shown, paired=paired)
    Path(path).write_text(html, encoding="utf-8")
    return Path(path)


def fill_template(estimates: dict, **values) -> str:
    "Return the page."
    from jinja2 import Environment

    template = Path(__file__).with_name("report_template.html").read_text("utf-8")
    data = json.dumps({name: est.to_dict() for name, est in estimates.items()})
    values["caveats"] = caveats(estimates)
    values["answers"] = {name: f"{est.dimension()}" for name, est in estimates.items()}
    values["descriptions"] = {k: describe_data(est) for k, est in estimates.items()}
    page = Environment(autoescape=True).from_string(template)
    return page.render(values, estimates=estimates, data=quote(data))
