"""`spectral-moments estimate data.npy`: the options are those of the library's functions."""

import argparse
import ast
import json
import math
import os
import sys
from contextlib import suppress
from inspect import signature
from pathlib import Path

import numpy as np

import spectral_moments as sm

from ..checks import printable
from ..signatures import Parameter, parameter_comments

# name of a command: function of the library whose signature gives the options
COMMANDS = dict(estimate="estimate", align="alignments", compare="compare", report="report")
NO_ANSWER = 4  # exit code if the interval of the dimension has no end
EXIT_CODES = f"""exit codes: 0 done; 1 the answer could not be written; 2 the data or options
cannot be used; 3 a fault of the program; {NO_ANSWER} the interval of the dimension has no end
(estimate --dimension); 130 interrupted"""
READING = ("key", "header", "index")  # options of `load`
LABELS = ("groups", "column_groups")  # read from files
PYTHON_ONLY = ("phi", "given", "systems", "estimates", "path", "stderr", "among", "options")
SHORT = {"random_state": "--seed", "n_jobs": "--jobs", "n_permutations": "--permutations"}
OWN = ("command", "files", "output", "json", "transpose", "shards", "dimension", *READING)


def read_value(text):
    "Return a number, a tuple or a word of Python, such as None, or the text."
    for spelling in (text, text.capitalize()):  # none, true; names in a dict stay
        with suppress(ValueError, SyntaxError):
            return ast.literal_eval(spelling)
    return text


def add_options(parser, function, without=()):
    "Add a flag for each keyword: type and default of the signature, help of its comment."
    parameters = parameter_comments(function)
    for name in signature(function).parameters:
        if name in PYTHON_ONLY or name in without:
            continue
        kind, comment = parameters.get(name, Parameter())
        about = dict(dest=name, help=comment.replace("%", "%%"), default=None)
        if name in LABELS:
            about |= dict(action="append", metavar="FILE")
            about["help"] += "; a text file with a label in each line, .npy, or FILE:KEY"
        elif kind.startswith("bool") and "str" not in kind:
            about["action"] = argparse.BooleanOptionalAction
        else:
            text_or_number = str if kind.startswith("str") else read_value
            about |= dict(type=int if kind == "int" else text_or_number, metavar="VALUE")
        flags = ["--" + name.replace("_", "-"), *SHORT.get(name, "").split()]
        parser.add_argument(*flags, **about)


def make_parser() -> argparse.ArgumentParser:
    "Return the parser of the whole command."
    parser = argparse.ArgumentParser(
        prog="spectral-moments", description=sm.__doc__.split("\n")[0], epilog=EXIT_CODES
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {sm.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, function_name in COMMANDS.items():
        function = getattr(sm, function_name)
        text = function.__doc__.split("\n")[0].replace("%", "%%")
        one = commands.add_parser(name, help=text, description=text, epilog=EXIT_CODES)
        about = "a matrix, inputs x features; several: one system each (estimate: --shards)"
        one.add_argument("files", nargs="+", metavar="FILE", help=about)
        add_options(one, sm.load)
        add_options(one, function)
        about = "file to write: the page, .json or text"
        one.add_argument("-o", "--output", metavar="FILE", default="", help=about)
        one.add_argument("--json", action="store_true", help="print JSON, not text")
        orientation = one.add_mutually_exclusive_group()
        about = "reverse the axes: features x inputs (x repeats), as Matlab has them"
        orientation.add_argument("--transpose", action="store_true", help=about)
        if name != "estimate":
            align_only = ["n_max"] if name == "align" else []  # its words have two letters
            add_options(one, sm.estimate, [*signature(function).parameters, *align_only])
            continue
        about = "the files are parts of the inputs of one matrix"
        orientation.add_argument("--shards", action="store_true", help=about)
        about = f"print the dimension; exit code {NO_ANSWER} if its interval has no end"
        one.add_argument("--dimension", action="store_true", help=about)
    return parser


def read_labels(path):
    "Return the labels in a file: one in each line, a .npy array, or FILE:KEY."
    file, _, key = path.rpartition(":")
    if len(file) > 1:
        return np.ravel(sm.load(file, key))
    if path.endswith(".npy"):
        return np.ravel(sm.load(path))
    lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    return np.array([line.strip() for line in lines if line.strip()])


def library_options(args, names):
    "Return the options of the library that were given, labels read from their files."
    given = {k: x for k, x in vars(args).items() if k not in OWN and x is not None}
    for name in {*LABELS} & {*given}:
        labels = [read_labels(path) for path in given[name]]
        given[name] = labels[0] if len(labels) == 1 else dict(zip(names, labels))
    return given


def run(args):
    "Return what the function of the library returns for the matrices in the files."
    names = [Path(path).stem for path in args.files]
    if len({*names}) < len(names):
        names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
    options = library_options(args, names)
    reading = {name: getattr(args, name) for name in READING}
    if getattr(args, "shards", False):
        return sm.estimate(sm.load(args.files, **reading), **options)
    matrices = {name: sm.load(path, **reading) for name, path in zip(names, args.files)}
    if args.transpose:
        matrices = {name: np.transpose(x[...]) for name, x in matrices.items()}
    if args.command == "report":
        return sm.report(matrices, args.output or "report.html", **options)
    if args.command != "estimate":
        return getattr(sm, COMMANDS[args.command])(matrices, **options)
    if len(matrices) > 1 and not options.get("trials"):
        shards = "--shards if they are parts of the inputs of one matrix"
        raise ValueError(f"pass {shards}, or --trials if they are repeats of it")
    phi = [*matrices.values()]
    return sm.estimate(phi if len(phi) > 1 else phi[0], **options)


def answer(args):
    "Return what is printed, and the exit code, after writing the output file."
    result, path, code = run(args), Path(args.output), 0
    if args.command == "report":
        return str(result), code
    if getattr(args, "dimension", False):
        result = result.dimension()
        code = 0 if math.isfinite(result.interval()[1]) else NO_ANSWER
    in_json = args.json or path.suffix.lower() == ".json"
    text = json.dumps(result.to_dict(), indent=1) if in_json else str(result)
    if args.output:
        path.write_text(text + "\n", encoding="utf-8")
    return text, code


def complain(error, args=None):
    "Print one line on the standard error: the flag, if it is about one, and the reason."
    name = getattr(error, "argument", None)
    flag = f"--{name.replace('_', '-')}: " if name and hasattr(args, name) else ""
    reason = " ".join(str(error).split()) or "needs more memory than there is"
    reason = reason.replace("pass trials=True", "pass --trials (trials=True)")
    print(f"spectral-moments: {printable(flag + reason)}", file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    "Run the command `spectral-moments` and return its exit code."
    args = make_parser().parse_args(argv)
    try:
        text, code = answer(args)
    except KeyboardInterrupt:
        return 130
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        complain(error, args)
        return 2
    except Exception as error:
        complain(f"a fault of the program, please report it: {error!r}")
        return 3
    try:
        print(printable(text), flush=True)
        return code if sys.stdout is not None else 1
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left
        if not isinstance(error, BrokenPipeError):
            complain(f"the answer could not be written ({error.strerror})")
        return 1
