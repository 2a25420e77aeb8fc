"""Everything about one recording, or several compared, on one page."""

import io
import json
import math
import os
import re
import time
import warnings
from functools import cache
from importlib import import_module
from inspect import signature
from pathlib import Path
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

    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # long names, intervals without end
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


def make_part(name: str, title: str, make, end: float) -> dict:
    "Return figure and table of what `make` returns, or the reason why they are missing."
    part = dict(name=name, title=title)
    try:
        if time.monotonic() > end:
            raise RuntimeError("the time is over; pass more seconds")
        result = make()
        part["rows"] = result if isinstance(result, list) else [*result._rows()]
        part["notes"] = getattr(result, "notes", [])
        part["figure"] = draw_svg(result, title) if hasattr(result, "plot") else ""
    except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
        part["reason"] = printable(" ".join(str(error).split()))
    return part


def more_data(est) -> list[list]:
    "Return the expected standard error of the dimension with four times as much data."
    P, Q = est.shape[1:]
    dimension, rows = est.dimension(), [["", "expected standard error"]]
    for name, size in {
        "as it is": (P, Q),
        "four times as many inputs": (4 * P, Q),
        "four times as many features": (P, 4 * Q),
        "four times as many of both": (4 * P, 4 * Q),
    }.items():
        rows.append([name, f"{dimension.expected_stderr(*size):.3g}"])
    return rows


def dimension_of_parts(est, phi, options: dict):
    "Return the dimension against size, from few random parts of a large matrix."
    entries = math.prod(est.shape)
    if entries > LARGEST:
        raise ValueError("the matrix is large; use sm.dimension_by_size with few draws")
    n_draws = int(np.clip(LARGEST / (8 * entries), 5, 20))
    return sm.dimension_by_size(phi, n_draws=n_draws, **options)


def cheap_parts(est) -> dict:
    "Return what follows from the moments of one recording: title -> function."
    return {
        "Moments": lambda: est,
        "What more data would give": lambda: more_data(est),
        "Spectrum": lambda: sm.feasible(est),
        "Power law": lambda: sm.power_law(est),
    }


def costly_parts(est, phi, options: dict) -> dict:
    "Return what needs the recording itself: title -> function."
    parts = {"Dimension of parts": lambda: dimension_of_parts(est, phi, options)}
    if est.shape[0] > 1:
        known = {k: x for k, x in options.items() if k not in ("trials", "noise")}
        parts["Noise"] = lambda: sm.noise.noise_moments(phi, **known)
    return parts


def alignment_parts(recordings: dict, options: dict) -> dict:
    "Return what several recordings of the same inputs share: title -> function."
    found = cache(lambda: sm.alignments(recordings, **options))
    return {
        "Alignment": found,
        "Is the alignment above chance?": lambda: found().permutation_test(199),
    }


def make_parts(
    estimates: dict, recordings: dict, paired, options: dict, end: float
) -> list:
    "Return all sections: first what costs nothing, then the rest until the time is over."
    cheap, costly = {}, {}  # (name of the recording, title) -> function
    if len(estimates) > 1:
        compare = lambda: sm.compare(estimates, "dimension", paired=paired)
        cheap["", "Do the dimensions differ?"] = compare
    if len(estimates) > 1 and len(recordings) == len(estimates) and paired == "inputs":
        for title, make in alignment_parts(recordings, options).items():
            costly["", title] = make
    for name, est in estimates.items():
        for title, make in cheap_parts(est).items():
            cheap[name, title] = make
        if name in recordings:
            for title, make in costly_parts(est, recordings[name], options).items():
                costly[name, title] = make
    parts = [make_part(*key, make, math.inf) for key, make in cheap.items()]
    return parts + [make_part(*key, make, end) for key, make in costly.items()]


def caveats(estimates: dict) -> list[str]:
    "Return the notes of all estimates, by name if there are several."
    found = []
    for name, est in estimates.items():
        dimension = est.dimension()
        remark = [dimension.remark] if dimension.remark else []
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
    seconds: float = 60,  # no further costly part is begun after so many
    **options,  # others of `estimate`
) -> Path:  # the file
    "Write everything about a recording on one page: sm.report(phi, 'report.html')."
    for package in ("jinja2", "matplotlib"):
        try:
            import_module(package)
        except ImportError:
            remedy = f"a report needs {package}; pip install 'spectral_moments[report]'"
            raise ImportError(remedy) from None
    named = given if isinstance(given, dict) else {title or "Recording": given}
    named = {printable(str(name)): x for name, x in named.items()}
    if not named:
        raise ArgumentError("given", "given must be a recording or a dict of recordings")
    if paired not in (None, "inputs", "features"):
        raise ArgumentError("paired", f"paired = {paired!r} is not 'inputs' or 'features'")
    check_options("report", options, [*signature(sm.estimate).parameters][2:])
    n_max = check_count(n_max, "n_max", least=2)
    end = time.monotonic() + float(check_numbers(seconds, "seconds"))
    recordings = {k: x for k, x in named.items() if not isinstance(x, sm.Estimate)}
    estimates = named | {k: sm.estimate(x, n_max, **options) for k, x in recordings.items()}
    about = {k: x for k, x in options.items() if k in DATA_OPTIONS}
    html = fill_template(
        estimates,
        title=printable(title or (next(iter(named)) if len(named) == 1 else "Report")),
        caveats=caveats(estimates),
        parts=make_parts(estimates, recordings, paired, about, end),
        paired=paired,
    )
    Path(path).write_text(html, encoding="utf-8")
    return Path(path)


def fill_template(estimates: dict, **values) -> str:
    "Return the page."
    from jinja2 import Environment

    template = Path(__file__).with_name("report_template.html").read_text("utf-8")
    data = json.dumps({name: est.to_dict() for name, est in estimates.items()})
    values["answers"] = {name: f"{est.dimension()}" for name, est in estimates.items()}
    values["descriptions"] = {k: describe_data(est) for k, est in estimates.items()}
    page = Environment(autoescape=True).from_string(template)
    return page.render(values, estimates=estimates, data=quote(data))
