"""Everything about one recording, or several compared, on one page."""

import io
import json
import math
import os
import re
import time
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike

import spectral_moments as sm

from ..checks import ArgumentError, check_count, check_numbers, check_options, printable

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


class Part(NamedTuple):
    "A section of the page."

    title: str
    text: str  # what is shown
    make: Callable  # returns a result of the library, or the rows of a table
    costly: bool = False  # left out when the time is over


def render_part(part: Part, end: float) -> dict:
    "Return figure and table of a section, or the reason why it is missing."
    shown = dict(title=part.title, text=part.text)
    try:
        if part.costly and time.monotonic() > end:
            raise RuntimeError("the time is over; pass more seconds")
        result = part.make()
        if isinstance(result, list):
            return shown | dict(rows=result)
        return shown | dict(table=result._repr_html_(), figure=draw_svg(result, part.title))
    except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
        reason = printable(" ".join(str(error).split()))
        return shown | dict(text=f"Left out: {reason}.")


def more_data(est) -> list[dict]:
    "Return the expected standard error of the dimension with four times as much data."
    P, Q = est.shape[1:]
    sizes = {
        "as it is": (P, Q),
        "four times as many inputs": (4 * P, Q),
        "four times as many features": (P, 4 * Q),
        "four times as many of both": (4 * P, 4 * Q),
    }
    expected = {k: est.dimension().expected_stderr(*x).expected for k, x in sizes.items()}
    return [{"": name, "standard error": f"{x:.3g}"} for name, x in expected.items()]


def dimension_of_parts(est, phi, options: dict):
    "Return the dimension against size, from few random parts of a large matrix."
    entries = math.prod(est.shape)
    if entries > LARGEST:
        raise ValueError("the matrix is large; use sm.dimension_by_size with few draws")
    n_draws = int(np.clip(LARGEST / (8 * entries), 5, 20))
    return sm.dimension_by_size(phi, n_draws=n_draws, **options)


def parts_of(name: str, est, phi, options: dict) -> list[Part]:
    "Return the sections about one recording; `phi` is None if only the estimate is known."
    parts = [
        Part(
            f"Moments{name}",
            "m(n) is the sum of the n-th powers of the eigenvalues. Bars: 95% intervals.",
            lambda: est,
        ),
        Part(
            f"What more data would give{name}",
            "Expected standard error of the dimension.",
            lambda: more_data(est),
        ),
        Part(
            f"Spectrum{name}",
            "Points: the smoothest spectrum with these moments. Shaded: all that fit.",
            lambda: sm.feasible(est),
        ),
        Part(
            f"Power law{name}",
            "Do the eigenvalues fall like a power of their rank?",
            lambda: sm.power_law(est),
        ),
    ]
    if phi is not None and est.shape[0] > 1:
        text = "Moments and dimension of the differences between repeats."
        make = lambda: sm.noise.noise_moments(phi, **options)
        parts.append(Part(f"Noise{name}", text, make, costly=True))
    if phi is not None:
        text = "Random parts of the matrix; an unbiased estimate is level."
        make = lambda: dimension_of_parts(est, phi, options)
        parts.append(Part(f"Dimension of parts{name}", text, make, costly=True))
    return parts


def parts_together(estimates: dict, recordings: dict, paired, options: dict) -> list[Part]:
    "Return the sections that compare several recordings."
    how = f"paired by {paired}" if paired else "taken as independent"
    parts = [
        Part(
            "Do the dimensions differ?",
            f"All pairs, {how}; p corrected by Holm's rule. Bars: 95% intervals.",
            lambda: sm.compare(estimates, "dimension", paired=paired),
        )
    ]
    if paired == "inputs" and len(recordings) == len(estimates):
        text = "1: the same geometry up to rotation and scale; 0: unrelated."
        make = lambda: sm.alignments(recordings, **options)
        parts.append(Part("Alignment", text, make, costly=True))
    return parts


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
    parts = parts_together(estimates, recordings, paired, about) if len(named) > 1 else []
    for name, est in estimates.items():
        of = f" of {name}" if len(named) > 1 else ""
        parts += parts_of(of, est, recordings.get(name), about)
    parts.sort(key=lambda part: part.costly)  # what costs nothing comes first
    if title is None:
        title = next(iter(named)) if len(named) == 1 else "Report"
    html = fill_template(
        title=printable(title),
        estimates=estimates,
        caveats=caveats(estimates),
        parts=[render_part(part, end) for part in parts],
    )
    Path(path).write_text(html, encoding="utf-8")
    return Path(path)


def fill_template(estimates: dict, **values) -> str:
    "Return the page."
    try:
        from jinja2 import Environment
    except ImportError:
        remedy = "a report needs jinja2; pip install 'spectral_moments[report]'"
        raise ImportError(remedy) from None
    template = Path(__file__).with_name("report_template.html").read_text("utf-8")
    data = json.dumps({name: est.to_dict() for name, est in estimates.items()})
    values |= dict(estimates=estimates, data=quote(data), citation=CITATION)
    return Environment(autoescape=True).from_string(template).render(values)
