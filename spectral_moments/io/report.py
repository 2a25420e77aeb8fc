"""Everything about one recording, or several compared, on one page."""

import io
import json
import math
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike

import spectral_moments as sm

from ..checks import ArgumentError, check_count, check_options, printable
from ..estimation import DATA_OPTIONS, ESTIMATE_OPTIONS
from ..results import describe_data

MAX_PARTS_ENTRIES = 2**25  # entries of a matrix whose random parts are estimated
INK = "#0a0b0c"  # replaced by the colour of the text, light or dark
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "spectral_moments",
    **dict.fromkeys(["text.color", "axes.edgecolor", "axes.labelcolor"], INK),
    **dict.fromkeys(["xtick.color", "ytick.color"], INK),
    **dict.fromkeys(["axes.spines.top", "axes.spines.right"], False),
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


def render(title: str, make: Callable, name: str = "") -> dict:
    "Return figure and table of what `make` returns, or the reason why they are missing."
    part = dict(name=name, title=title)
    try:
        result = make()
        part["rows"] = result if isinstance(result, list) else [*result.table_rows()]
        part["notes"] = getattr(result, "notes", [])
        part["figure"] = draw_svg(result, title) if hasattr(result, "plot") else ""
    except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
        part["reason"] = printable(" ".join(str(error).split()))
    return part


def more_data(est) -> list[list]:
    "Return the expected standard error of the dimension with four times as much data."
    groups, dimension = est.settings.get("groups", {}), est.dimension()
    P, Q = groups.get("inputs", est.shape[1]), groups.get("features", est.shape[2])
    inputs, features = ("groups of " * (x in groups) + x for x in ("inputs", "features"))
    sizes = {
        "as it is": (P, Q),
        f"four times as many {inputs}": (4 * P, Q),
        f"four times as many {features}": (P, 4 * Q),
        "four times as many of both": (4 * P, 4 * Q),
    }
    found = [[name, f"{dimension.expected_stderr(*sizes[name]):.3g}"] for name in sizes]
    return [["", "expected standard error"], *found]


def dimension_of_parts(est, phi, options: dict):
    "Return the dimension against size, from few random parts of a large matrix."
    entries = math.prod(est.shape)
    if entries > MAX_PARTS_ENTRIES:
        raise ValueError("the matrix is large; use sm.dimension_by_size with few draws")
    n_draws = int(np.clip(MAX_PARTS_ENTRIES / (8 * entries), 5, 20))
    return sm.dimension_by_size(phi, n_draws=n_draws, **options)


def parts_of_one(name: str, est, phi, options: dict):
    "Yield the parts about one recording; `phi` is None if only its moments are known."
    yield render("Moments", lambda: est, name)
    yield render("What more data would give", lambda: more_data(est), name)
    yield render("Spectrum", lambda: sm.feasible(est), name)
    yield render("Power law", lambda: sm.power_law(est), name)
    if phi is None:
        return
    of_parts = lambda: dimension_of_parts(est, phi, options)
    yield render("Dimension of parts", of_parts, name)
    if est.shape[0] > 1:
        known = {k: x for k, x in options.items() if k not in ("trials", "noise")}
        yield render("Noise", lambda: sm.noise.noise_moments(phi, **known), name)


def parts_together(estimates: dict, recordings: dict, paired, options: dict):
    "Yield the parts that compare several recordings."
    comparison = lambda: sm.compare(estimates, paired=paired)
    yield render("Do the dimensions differ?", comparison)
    if paired == "inputs" and len(recordings) == len(estimates):
        alike = cache(lambda: sm.alignments(recordings, **options))
        yield render("Alignment", alike)
        test = lambda: alike().permutation_test(199)
        yield render("Is the alignment above chance?", test)


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
    title: str | None = None,  # of the page; None: the name of the only recording
    paired: str | None = None,  # what several share, in order: "inputs" or "features"
    **options,  # others of `estimate`
) -> Path:  # the file
    "Write everything about a recording on one page: sm.report(phi, 'report.html')."
    try:
        import jinja2, matplotlib  # noqa: E401, F401
    except ImportError as error:
        remedy = "pip install 'spectral_moments[report]'"
        raise ImportError(f"{error}; {remedy}") from None
    title = "" if title is None else str(title)
    named = given if isinstance(given, dict) else {title or "Recording": given}
    named = {printable(str(name)): x for name, x in named.items()}
    if not named:
        raise ArgumentError("given", "given must be a recording or a dict of recordings")
    if paired is not None and str(paired) not in ("inputs", "features"):
        raise ArgumentError("paired", "paired must be None, 'inputs' or 'features'")
    check_options(report, options, ESTIMATE_OPTIONS)
    n_max = check_count(n_max, "n_max", least=2)
    recordings = {k: x for k, x in named.items() if not isinstance(x, sm.Estimate)}
    estimates = named | {k: sm.estimate(x, n_max, **options) for k, x in recordings.items()}
    about = {k: x for k, x in options.items() if k in DATA_OPTIONS}
    several = len(named) > 1
    parts = [*parts_together(estimates, recordings, paired, about)] if several else []
    for name, est in estimates.items():
        parts += parts_of_one(name, est, recordings.get(name), about)
    title = printable(title or ("Report" if several else next(iter(named))))
    html = fill_template(estimates, title=title, parts=parts, paired=paired)
    Path(path).write_text(html, encoding="utf-8")
    return Path(path)


def fill_template(estimates: dict, **values) -> str:
    "Return the page."
    from jinja2 import Environment

    template = Path(__file__).with_name("report_template.html").read_text("utf-8")
    data = json.dumps({name: est.to_dict() for name, est in estimates.items()})
    values |= dict(estimates=estimates, caveats=caveats(estimates), data=quote(data))
    values["answers"] = {name: f"{est.dimension()}" for name, est in estimates.items()}
    page = Environment(autoescape=True).from_string(template)
    return page.render(values, describe_data=describe_data)
