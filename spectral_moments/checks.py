"""Validation of arguments: each is used as it is meant, or refused by name."""

import difflib
import logging
import operator
import os
import sys
import textwrap
import threading
import time
import warnings

import numpy as np


class ArgumentError(ValueError, TypeError):
    "An argument that cannot be used, because of its type or its value."

    def __init__(self, argument: str, message: str):
        message = " ".join(message.split())  # one line, without all of a pasted array
        if len(message) > 380:
            message = f"{message[:170]} ... {message[-200:]}"
        super().__init__(argument, message)
        self.argument, self.message = argument, message

    def __str__(self):
        return self.message


def show_error(call, *args, **kwargs):
    "Assert that the call raises `TypeError` or `ValueError`, and print the message."
    try:
        call(*args, **kwargs)
    except (TypeError, ValueError) as error:
        message = f"{type(error).__name__}: {error}"
        print(textwrap.fill(message, 88, subsequent_indent="    "))
    else:
        raise AssertionError("the call was expected to fail, and did not")


def check_options(function_name: str, given: dict, known) -> None:
    "Refuse options that the function does not have, by the function's own name."
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, [*known], 1, 0.6)
            remedy = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known)}"
            raise ArgumentError(name, f"{function_name}() has no option {name!r}; {remedy}")


def check_count(value: int, name: str, *, least: int = 1, most: float = np.inf) -> int:
    "Return `value` as an int between `least` and `most`."
    try:
        count = operator.index(value)
    except TypeError:
        count = None
    if count is None or isinstance(value, (bool, np.bool_)):
        raise ArgumentError(name, f"{name} must be a whole number, not {value!r}")
    if count < least:
        problem = f"{name} = {count} is too small; it must be at least {least}"
        raise ArgumentError(name, problem)
    if count > most:
        raise ArgumentError(name, f"{name} = {count:.3g} is too large; at most {most}")
    return count


def check_order(n_max: int, shape: tuple[int, ...]) -> int:
    "Return `n_max` as an int, for a matrix or trials of `shape` (..., P, Q)."
    n_max, (P, Q) = check_count(n_max, "n_max"), shape[-2:]
    if n_max > min(P, Q):
        problem = f"n_max = {n_max} needs {n_max} rows and columns; phi is {P} x {Q}"
        raise ArgumentError("n_max", problem)
    return n_max


def check_positive(value: float, name: str, meaning: str) -> float:
    "Return `value` as a positive, finite float."
    if check_numbers(value, name).shape != () or not (np.isfinite(value) and value > 0):
        problem = f"{name} = {value} must be positive and finite: it is {meaning}"
        raise ArgumentError(name, problem)
    return float(value)


def check_level(level: float) -> float:
    "Return the level of an interval as a float between 0 and 1."
    if check_numbers(level, "level").shape != () or not 0 < level < 1:
        problem = f"level = {level} must lie between 0 and 1, for instance 0.95"
        raise ArgumentError("level", problem)
    return float(level)


def check_numbers(value, name: str) -> np.ndarray:
    "Return `value` as an array of doubles."
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise ArgumentError(name, f"{name} must be numbers, not this {kind}") from None


def check_flag(value: bool, name: str) -> bool:
    "Return `value` as a bool; nothing but True and False is one."
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(name, f"{name} must be True or False, not {value!r}")
    return bool(value)


def check_random_state(random_state=None) -> np.random.Generator:
    "Return a numpy `Generator` from a seed, a `Generator` or None (fresh randomness)."
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)  # of a Generator: the same
    if not hasattr(random_state, "__index__"):
        problem = "random_state must be None, an int or a numpy Generator, not a "
        raise ArgumentError("random_state", problem + type(random_state).__name__)
    return np.random.default_rng(check_count(random_state, "random_state", least=0))


def check_n_jobs(n_jobs: int | None = None) -> int:
    "Return the number of threads to use; None: all cores of this process."
    if n_jobs is not None:
        return check_count(n_jobs, "n_jobs")
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_index(labels, index, name: str) -> None:
    "Refuse a pandas Series whose index is that of the data frame in another order."
    own = getattr(labels, "index", None)  # that of a list is a method
    if not (hasattr(own, "equals") and hasattr(index, "equals")):
        return
    if not own.equals(index) and own.isin(index).any():
        problem = f"""{name} has the index of the data frame in another order, or a part of
            it; pass {name}.loc in the order of the data frame, or {name}.to_numpy() if
            the order is right"""
        raise ArgumentError(name, problem)


def check_labels(labels, size: int, name: str) -> np.ndarray | None:
    "Return `size` labels as numbers 0, 1, ...; None: each row or column is its own group."
    if labels is None:
        return None
    if np.ma.is_masked(labels):
        raise ArgumentError(name, f"{name} has masked entries; give each its own label")
    labels = np.asarray(labels)
    if labels.shape != (size,):
        axis = "column" if name == "column_groups" else "row"
        problem = f"""{name} has shape {labels.shape}; it must hold {size} labels, one for
            each {axis} of the matrix (inputs are rows, features are columns)"""
        raise ArgumentError(name, problem)
    missing = np.array([label is None or label != label for label in labels])
    if missing.any():
        problem = f"""{name} has {missing.sum()} missing labels (the first at
            {missing.argmax()}); give each its own label"""
        raise ArgumentError(name, problem)
    labels = labels.astype(str) if labels.dtype == object else labels
    return np.unique(labels, return_inverse=True)[1]


def check_population(population, measured: int) -> int | None:
    """Return how many features there are in all, of which `measured` are here; None:
    infinitely many; "all": those that are here."""
    if isinstance(population, (tuple, list)) and len(population) == 2:
        inputs, population = population
        if inputs is not None:
            problem = """population is the number of features in all; inputs are always a
                sample of more. For these inputs and no others:
                sm.kong_valiant(phi, n_max, sampled="columns")"""
            raise ArgumentError("population", problem)
        message = "population=(None, R) is now population=R, the number of features in all"
        warnings.warn(message, DeprecationWarning, stacklevel=3)
    if population is None or (isinstance(population, str) and population == "all"):
        return measured if population else None
    if isinstance(population, (str, float, tuple, list, dict)):
        problem = f"""population = {population!r} must be the number of features in all,
            "all" if all were measured, or None for infinitely many"""
        raise ArgumentError("population", problem)
    if check_count(population, "population") < measured:
        problem = f"""population = {population} is smaller than the {measured} features that
            were measured; None means infinitely many"""
        raise ArgumentError("population", problem)
    return int(population)


def printable(text: str) -> str:
    "Return the text without control characters, such as the escapes in a name."
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


class ProgressLines:
    "Progress as lines of the log of this package: what is done, and how long it will take."

    def __init__(self, total: int | None, unit: str, seconds: float):
        self.total, self.unit, self.seconds, self.done = total, unit, seconds, 0

    def __enter__(self):
        self.started, self.finished = time.monotonic(), threading.Event()
        self.thread = threading.Thread(target=self._log, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.finished.set()
        self.thread.join()

    def update(self, number=1):
        "Count so many more as done."
        self.done += number

    def _log(self):
        while not self.finished.wait(self.seconds):
            logging.getLogger("spectral_moments").warning(self.line())

    def line(self):
        "Return the line of this moment."
        passed = time.monotonic() - self.started
        if not self.done:
            return f"estimating for {passed:.0f} s"
        if self.total is None:
            return f"{self.done} {self.unit}s in {passed:.0f} s"
        rest = passed * max(self.total - self.done, 0) / self.done
        counts = f"{self.done} of {self.total} {self.unit}s"
        return f"{counts} in {passed:.0f} s, about {rest:.0f} s to go"


def progress_bar(progress: bool, total: int | None, unit: str = "draw"):
    """Return a context whose `update(number)` counts what is done: a tqdm bar, or lines of
    the log where there is no terminal; without `progress` one line every 15 seconds."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if not progress or not (terminal or "ipykernel" in sys.modules):
        return ProgressLines(total, unit, 5.0 if progress else 15.0)
    try:
        from tqdm.auto import tqdm
    except ImportError:
        remedy = "progress=True needs tqdm; pip install 'spectral_moments[progress]'"
        raise ImportError(remedy) from None
    return tqdm(total=total, unit=unit)
