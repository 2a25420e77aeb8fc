"""`spectral-moments estimate data.npy`: the options are those of the library's functions."""

import argparse
import json
import math
import os
import sys
import warnings
from inspect import signature
from pathlib import Path

import spectral_moments as sm  # loads what is used, and nothing before

NO_ANSWER = 4  # exit code if the data do not determine the dimension
EXIT_CODES = f"""exit codes: 0 done; 1 the answer could not be written; 2 the data or options
cannot be used; 3 a fault of the program; {NO_ANSWER} the data do not determine the dimension
(estimate --dimension); 130 interrupted"""
LABELS = ("groups", "column_groups")  # read from files
PYTHON_ONLY = ("phi", "given", "systems", "path", "stderr", "among", "options")
SHORT = {"random_state": "--seed", "n_jobs": "--jobs", "n_permutations": "--permutations"}
PICTURES = (".png", ".pdf", ".svg")


def read_value(text):
    "Return a number, None ('none' or 'inf'), ('binomial', N) of 'binomial:N', or a word."
    name, _, count = text.partition(":")
    if name == "binomial" and count.isdecimal():
        return name, int(count)
    if text.lower() in ("none", "inf"):
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def add_options(parser, function, without=()):
    "Add a flag for each keyword: type and default of the signature, help of its comment."
    from ..signatures import Note, signature_notes

    notes = signature_notes(function)
    for name, parameter in signature(function).parameters.items():
        if name in (*PYTHON_ONLY, *without) or parameter.kind is parameter.VAR_KEYWORD:
            continue
        note = notes.get(name, Note())
        about = dict(dest=name, help=note.comment.replace("%", "%%"), default=None)
        if isinstance(parameter.default, bool) or name == "trials":
            about["action"] = argparse.BooleanOptionalAction
        elif name in LABELS:
            about |= dict(nargs="+", metavar="FILE")
            about["help"] += "; from a text file with a label in each line, or .npy"
        elif note.kind == "int":
            about |= dict(type=int, metavar="N")
        else:
            about |= dict(type=read_value, metavar="VALUE")
        flags = ["--" + name.replace("_", "-")] + [SHORT[name]] * (name in SHORT)
        parser.add_argument(*flags, **about)


def make_parser() -> argparse.ArgumentParser:
    "Return the parser of the whole command."
    parser = argparse.ArgumentParser(
        prog="spectral-moments", description=sm.__doc__.split("\n")[0], epilog=EXIT_CODES
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {sm.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (function_name, run) in COMMANDS.items():
        function = getattr(sm, function_name)
        text = function.__doc__.split("\n")[0]
        command = commands.add_parser(name, help=text, description=text, epilog=EXIT_CODES)
        about = "a matrix, inputs x features; several: one system each (estimate: --shards)"
        command.add_argument("files", nargs="+", metavar="FILE", help=about)
        command.add_argument("--key", help="name of the array in a file that holds several")
        add_options(command, function)
        if function is not sm.estimate:
            add_options(command, sm.estimate, signature(function).parameters)
        about = "file to write: a page, .json, a picture (.png, .pdf, .svg) or text"
        command.add_argument("-o", "--output", metavar="FILE", help=about)
        command.add_argument("--json", action="store_true", help="print JSON, not text")
        if name == "estimate":
            about = "the files are parts of the inputs of one matrix"
            command.add_argument("--shards", action="store_true", help=about)
            about = "print the dimension only; exit code 4 if it is not determined"
            command.add_argument("--dimension", action="store_true", help=about)
        command.set_defaults(run=run)
    return parser


def read_labels(path):
    "Return the labels in a file: a .npy array, or one in each line."
    import numpy as np

    if path.endswith(".npy"):
        return np.load(path, allow_pickle=False).reshape(-1)
    lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    return np.array([line.strip() for line in lines if line.strip()])


def library_options(args):
    "Return the options of the library that were given, labels read from their files."
    own = ("run", "files", "key", "output", "json", "shards", "dimension")
    given = {k: x for k, x in vars(args).items() if k not in own and x is not None}
    for name in {*LABELS} & {*given}:
        labels = [read_labels(path) for path in given[name]]
        given[name] = labels[0] if len(labels) == 1 else dict(zip(names_of(args), labels))
    return given


def names_of(args):
    "Return a short name for each file, numbered where files have the same."
    stems = [Path(path).stem for path in args.files]
    if len({*stems}) == len(stems):
        return stems
    return [f"{stem} ({number})" for number, stem in enumerate(stems, 1)]


def load_each(args):
    "Return the matrix in each file, by name."
    return {name: sm.load(x, args.key) for name, x in zip(names_of(args), args.files)}


def run_estimate(args):
    "Return the estimate of one matrix, of parts of its inputs or of repeats."
    options = library_options(args)
    if args.shards or len(args.files) == 1:
        phi = sm.load(args.files if args.shards else args.files[0], args.key)
    elif options.get("trials"):
        phi = [*load_each(args).values()]
    else:
        shards = "--shards if they are parts of the inputs of one matrix"
        raise ValueError(f"pass {shards}, or --trials if they are repeats of it")
    return sm.estimate(phi, **options)


def run_align(args):
    "Return the alignments of all pairs of systems."
    return sm.alignments(load_each(args), **library_options(args))


def run_compare(args):
    "Return the comparison of all pairs of matrices."
    return sm.compare(load_each(args), **library_options(args))


def run_report(args):
    "Write the page and return its path."
    return sm.report(load_each(args), args.output or "report.html", **library_options(args))


COMMANDS = {  # name: function whose signature gives the options, and what is done
    "estimate": ("estimate", run_estimate),
    "align": ("alignments", run_align),
    "compare": ("compare", run_compare),
    "report": ("report", run_report),
}


def answer(args):
    "Return what is printed, and the exit code, after writing the output file."
    if args.output and not Path(args.output).parent.is_dir():
        raise ValueError(f"{args.output}: there is no such folder")
    result, code = args.run(args), 0
    if getattr(args, "dimension", False):
        est, result = result, result.dimension()
        determined = est.usable[:2].all() and all(map(math.isfinite, result.interval()))
        code = 0 if determined else NO_ANSWER
    if isinstance(result, Path):
        return str(result), code
    text = json.dumps(result.to_dict(), indent=1) if args.json else str(result)
    ending = Path(args.output or "").suffix.lower()
    if ending in PICTURES:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(5, 3.6), layout="constrained").subplots()
        result.plot(ax)
        ax.figure.savefig(args.output, dpi=150)
    elif args.output:
        content = json.dumps(result.to_dict(), indent=1) if ending == ".json" else text
        Path(args.output).write_text(content + "\n", encoding="utf-8")
        text = args.output
    return text, code


def complain(error, args=None):
    "Print one line on the standard error: the flag, if it is about one, and the reason."
    from ..checks import printable

    name = getattr(error, "argument", None)
    about = f"--{name.replace('_', '-')}: " if name and hasattr(args, name) else ""
    reason = " ".join(str(error).split()) or "needs more memory than there is"
    print(f"spectral-moments: {printable(about + reason)}", file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    "Run the command `spectral-moments` and return its exit code."
    from ..checks import printable

    args = make_parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sm.EstimateWarning)  # notes are printed
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
        complain(f"the answer could not be written ({error.strerror})")
        return 1
