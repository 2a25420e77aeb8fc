"""Validation of arguments: each is used as it is meant, or refused by name."""

import difflib
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from inspect import signature
from numbers import Integral

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
        return print(f"{type(error).__name__}: {error}")
    raise AssertionError("the call was expected to fail, and did not")


def check_options(function: Callable, given: dict, passed_on) -> None:
    "Refuse `**options` of a function that are not among those that it passes on."
    own = [*signature(function).parameters][:-1]
    known = [*dict.fromkeys([*own, *passed_on])]
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            remedy = f"did you mean {close[0]!r}?" if close else f"use {', '.join(known)}"
            problem = f"{function.__name__}() has no option {name!r}"
            raise ArgumentError(name, f"{problem}; {remedy}")


def check_count(value: int, name: str, *, least: int = 1, most: float = np.inf) -> int:
    "Return `value` as an int between `least` and `most`."
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ArgumentError(name, f"{name} must be a whole number, not {value!r}")
    if value < least:
        raise ArgumentError(name, f"{name} = {value} is too small; use at least {least}")
    if value > most:
        raise ArgumentError(name, f"{name} = {value} is too large; use at most {most}")
    return int(value)


def check_order(n_max: int, shape: tuple[int, ...]) -> int:
    "Return `n_max` as an int, for a matrix or repeats of `shape` (..., P, Q)."
    n_max, (P, Q) = check_count(n_max, "n_max"), shape[-2:]
    if n_max > min(P, Q):
        problem = f"n_max = {n_max} needs {n_max} rows and columns; phi is {P} x {Q}"
        raise ArgumentError("n_max", problem)
    return n_max


def check_numbers(value, name: str) -> np.ndarray:
    "Return `value` as an array of doubles."
    with suppress(TypeError, ValueError, OverflowError):
        if not np.iscomplexobj(value):
            return np.array(value, dtype=float)
    raise ArgumentError(name, f"{name} must be real numbers, not {value!r}")


def check_number(value: float, name: str) -> float:
    "Return `value` as a float that is not NaN."
    number = check_numbers(value, name)
    if number.shape or np.isnan(number):
        raise ArgumentError(name, f"{name} must be a single number, not {value!r}")
    return float(number)


def check_positive(value: float, name: str, meaning: str, below: float = np.inf) -> float:
    "Return `value` as a float above 0 and below `below`."
    number = check_numbers(value, name)
    if number.shape != () or not 0 < number < below:
        limits = "positive and finite" if below == np.inf else f"between 0 and {below}"
        raise ArgumentError(name, f"{name} = {value} must be {limits}: it is {meaning}")
    return float(number)


def check_level(level: float) -> float:
    "Return the level of an interval as a float between 0 and 1."
    return check_positive(level, "level", "a probability, for instance 0.95", below=1)


def check_flag(value: bool, name: str) -> bool:
    "Return `value` as a bool; nothing but True and False is one."
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(name, f"{name} must be True or False, not {value!r}")
    return bool(value)


def check_random_state(random_state=None) -> np.random.Generator:
    "Return a numpy `Generator` from a seed, a `Generator` or None (fresh randomness)."
    try:
        return np.random.default_rng(random_state)  # of a Generator: the same
    except (TypeError, ValueError):
        problem = f"random_state = {random_state!r} must be a seed >= 0, Generator or None"
        raise ArgumentError("random_state", problem) from None


def available_cores() -> int:
    "Count the cores that this process may use."
    affinity = getattr(os, "sched_getaffinity", None)  # only Linux has it
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def check_labels(labels, size: int, name: str, index=None) -> np.ndarray | None:
    """Return `size` labels as numbers 0, 1, ...; None: each row or column is its own group.
    If they are a Series, its index must not be that of the data frame in another order."""
    if labels is None:
        return None
    own = getattr(labels, "index", None)  # that of a list is a method
    both = hasattr(own, "equals") and hasattr(index, "equals")
    if both and not own.equals(index) and own.isin(index).any():
        problem = "has the index of the data frame in another order, or a part of it"
        raise ArgumentError(name, f"{name} {problem}; pass {name}.loc[phi.index]")
    with suppress(ValueError):  # of lists of different lengths, which have no shape
        labels = np.asarray(labels)
    shape = getattr(labels, "shape", None)
    if shape != (size,):
        axis = "column (feature)" if name == "column_groups" else "row (input)"
        given = "has lists of different lengths" if shape is None else f"has shape {shape}"
        problem = f"{size} labels, one for each {axis}; it {given}"
        raise ArgumentError(name, f"{name} must hold {problem}")
    missing = [x is None or type(x).__name__ == "NAType" or x != x for x in labels]
    if any(missing):
        which = f"{sum(missing)} missing labels (the first at {missing.index(True)})"
        raise ArgumentError(name, f"{name} has {which}; give each its own label")
    labels = labels.astype(str) if labels.dtype == object else labels
    return np.unique(labels, return_inverse=True)[1]


def check_population(population, measured: int) -> int | None:
    "Return how many features there are in all; None: infinitely many; 'all': `measured`."
    if population is None or (isinstance(population, str) and population == "all"):
        return None if population is None else measured
    if not isinstance(population, Integral) or not measured <= population < 2**63:
        problem = f"""population = {population!r} must be the number of all features, at
            least the {measured} measured; pass "all" if these are all, or None"""
        raise ArgumentError("population", problem)
    return int(population)


def printable(text: str) -> str:
    "Return the text without control characters, such as the escapes in a name."
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


class Progress:
    "Log every few seconds how much is done, and how long the rest will take."

    def __init__(self, seconds: float = np.inf):  # between two lines of the log
        self.seconds, self.total, self.done = seconds, 0, 0
        self.started = self.logged = time.monotonic()

    def update(self, number: int = 1) -> None:
        "Count steps that are done."
        self.done, now = self.done + number, time.monotonic()
        if now > self.logged + self.seconds:
            self.logged = now
            rest = (self.total - self.done) * (now - self.started) / self.done
            line = f"{self.done} of {self.total} steps, about {rest:.0f} s to go"
            logging.getLogger("spectral_moments").warning(line)
