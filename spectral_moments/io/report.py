"""Everything about one recording, or several compared, on one page."""

import io
import json
import math
import os
import re
import time
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
CITATION = (
    "Chun, C., Chung, S., Lee, D. D.: Estimating the spectral moments of the kernel "
    "integral operator from finite sample matrices. PMLR 258 (2025), 4060–4068."
)


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
    return svg.replace(INK, "currentColor")


def make_part(title: str, text: str, make, end: float) -> dict:
    "Return a section: figure and table of a result, or the reason why it is missing."
    try:
        if time.monotonic() > end:
            raise RuntimeError("the time is over; pass more seconds")
        result = make()
        rows = result if isinstance(result, list) else [*result._rows()]
        figure = draw_svg(result, title) if hasattr(result, "plot") else ""
        return dict(title=title, text=text, rows=rows, figure=figure)
    except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
        reason = printable(" ".join(str(error).split()))
        return dict(title=title, text=f"Left out: {reason}.")


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
    "Return what follows from the moments of one recording: title -> (text, function)."
    return {
        "Moments": (
            "m(n) is the sum of the n-th powers of the eigenvalues. Bars: 95% intervals.",
            lambda: est,
        ),
        "What more data would give": (
            "How much shorter the error of the dimension would become.",
            lambda: more_data(est),
        ),
        "Spectrum": (
            "Points: the smoothest spectrum with these moments. Shaded: all that fit.",
            lambda: sm.feasible(est),
        ),
        "Power law": (
            "Do the eigenvalues fall like a power of their rank?",
            lambda: sm.power_law(est),
        ),
    }


def costly_parts(est, phi, options: dict) -> dict:
    "Return what needs the recording itself: title -> (text, function)."
    parts = {
        "Dimension of parts": (
            "Random parts of the matrix; an unbiased estimate is level.",
            lambda: dimension_of_parts(est, phi, options),
        )
    }
    if est.shape[0] > 1:
        parts["Noise"] = (
            "Moments and dimension of the differences between repeats.",
            lambda: sm.noise.noise_moments(phi, **options),
        )
    return parts


def comparisons(estimates: dict, recordings: dict, paired, options: dict) -> tuple:
    "Return the cheap and the costly parts about several recordings."
    how = f"paired by {paired}" if paired else "taken as independent"
    text = f"All pairs, {how}; p corrected by Holm's rule. Bars: 95% intervals."
    compare = lambda: sm.compare(estimates, "dimension", paired=paired)
    cheap, costly = {"Do the dimensions differ?": (text, compare)}, {}
    if paired == "inputs" and len(recordings) == len(estimates):
        text = "1: the same geometry up to rotation and scale; 0: unrelated."
        costly["Alignment"] = (text, lambda: sm.alignments(recordings, **options))
    return cheap, costly


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
    cheap, costly = {}, {}
    if len(named) > 1:
        cheap, costly = comparisons(estimates, recordings, paired, about)
    for name, est in estimates.items():
        of = f" of {name}" if len(named) > 1 else ""
        cheap |= {f"{k}{of}": x for k, x in cheap_parts(est).items()}
        if name in recordings:
            found = costly_parts(est, recordings[name], about)
            costly |= {f"{k}{of}": x for k, x in found.items()}
    parts = [make_part(k, *x, math.inf) for k, x in cheap.items()]
    parts += [make_part(k, *x, end) for k, x in costly.items()]
    html = fill_template(
        title=printable(title or (next(iter(named)) if len(named) == 1 else "Report")),
        estimates=estimates,
        caveats=caveats(estimates),
        parts=parts,
    )
    Path(path).write_text(html, encoding="utf-8")
    return Path(path)


def fill_template(estimates: dict, **values) -> str:
    "Return the page."
    from jinja2 import Environment

    template = Path(__file__).with_name("report_template.html").read_text("utf-8")
    data = json.dumps({name: est.to_dict() for name, est in estimates.items()})
    values |= dict(estimates=estimates, data=quote(data), citation=CITATION)
    values["describe_data"] = describe_data
    return Environment(autoescape=True).from_string(template).render(values)
