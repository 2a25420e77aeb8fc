"""The command line: its flags are the options of the library."""

import json
import os
import subprocess
import sys
from inspect import signature
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import spectral_moments as sm
from spectral_moments.io import command_line
from spectral_moments.io.command_line import main, make_parser, read_value

PHI = sm.Linear(3).sample(20, 25, random_state=1)
MORE = sm.Linear(5).sample(60, 80, random_state=1)
LABELS = np.repeat(np.arange(10), 2)
pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    "Every test works in a folder of its own, with a few small files."
    monkeypatch.chdir(tmp_path)
    np.save("phi.npy", PHI)
    np.save("more.npy", MORE)
    np.save("other.npy", PHI[:, :20] + 0.1)
    np.save("trials.npy", np.stack([PHI, PHI + 0.1]))
    np.save("labels.npy", LABELS)
    np.savez("two.npz", a=PHI, b=PHI[::2], movie=LABELS)
    Path("labels.txt").write_text("".join(f"movie {x}\n" for x in LABELS))
    Path("five.txt").write_text("1\n2\n3\n4\n5\n" * 5)


def run(capsys, *arguments, code=0):
    "What a call prints."
    assert main([*map(str, arguments)]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def answer(capsys, *arguments, code=0):
    "What a call prints, as JSON."
    return json.loads(run(capsys, *arguments, "--json", code=code))


def reason(capsys, *arguments, code=2):
    "The one line that a failing call prints."
    assert main([*map(str, arguments)]) == code
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("spectral-moments: ")
    return err


def test_every_option_has_a_flag():
    commands = make_parser()._subparsers._group_actions[0].choices
    for command, function in command_line.COMMANDS.items():
        flags = {action.dest: action for action in commands[command]._actions}
        for option in {*signature(getattr(sm, function)).parameters, "center", "groups"}:
            if option not in command_line.PYTHON_ONLY:
                assert len(flags[option].help) > 5, option
    assert "n_max" not in {action.dest for action in commands["align"]._actions}


def test_values():
    numbers = {"3": 3, "0.5": 0.5, "1e-3": 1e-3, "('binomial', 40)": ("binomial", 40)}
    words = {"all": "all", "none": None, "True": True, "a b": "a b", "'": "'"}
    known = numbers | words | {"{'V4': 9}": {"V4": 9}}
    assert {text: read_value(text) for text in known} == known


FLAGS = {  # of the command: options of the library
    "--population all --no-center": dict(population="all", center=False),
    "--groups labels.npy": dict(groups=LABELS),
    "--groups labels.txt": dict(groups=LABELS),
    "--groups two.npz:movie": dict(groups=LABELS),
    "--column-groups five.txt": dict(column_groups=[1, 2, 3, 4, 5] * 5),
    "--noise 0.01": dict(noise=0.01),
    "--method increasing --seed 2 --jobs 1": dict(method="increasing", random_state=2),
    "--method increasing --permutations 3": dict(method="increasing", n_permutations=3),
    "--method all_cycles --sample none": dict(method="all_cycles", sample=None),
}


@pytest.mark.parametrize("flags", FLAGS)
def test_flags_are_options(flags, capsys):
    found = answer(capsys, "estimate", "phi.npy", "--n-max", 2, *flags.split())
    expected = sm.estimate(PHI, 2, **FLAGS[flags])
    np.testing.assert_allclose(found["values"], expected.values, rtol=1e-12)
    assert found["settings"] == json.loads(json.dumps(expected.to_dict()["settings"]))


def test_estimate(capsys):
    est = sm.estimate(PHI)
    assert run(capsys, "estimate", "phi.npy") == f"{est}\n"
    assert answer(capsys, "estimate", "phi.npy") == json.loads(json.dumps(est.to_dict()))
    np.save("matlab.npy", np.stack([PHI, PHI + 0.1]).T)  # features x inputs x repeats
    for name, rows in {"first": PHI[:8], "rest": PHI[8:], "again": PHI + 0.1}.items():
        np.save(f"{name}.npy", rows)
    trials = sm.estimate([PHI, PHI + 0.1], trials=True).values
    for call, expected in {
        "two.npz --key b": sm.estimate(PHI[::2]).values,
        "first.npy rest.npy --shards": est.values,
        "trials.npy --trials": trials,
        "phi.npy again.npy --trials": trials,
        "phi.npy --transpose": sm.estimate(PHI.T).values,
        "matlab.npy --transpose --trials": trials,
    }.items():
        found = answer(capsys, "estimate", *call.split())
        assert found["values"] == pytest.approx(expected, rel=1e-12)


def test_dimension(capsys):
    expected = sm.estimate(MORE, 2).dimension()
    assert run(capsys, "estimate", "more.npy", "--dimension") == f"{expected!s}\n"
    assert answer(capsys, "estimate", "more.npy", "--dimension") == expected.to_dict()
    np.save("copies.npy", np.concatenate([MORE, MORE[:6]]))  # its notes are printed
    assert "duplicates" in run(capsys, "estimate", "copies.npy", "--dimension")


def test_a_dimension_that_the_data_do_not_determine(capsys):
    "Independent noise of mean zero: m(2) is not distinguishable from zero."
    np.save("noise.npy", np.random.default_rng(7).standard_normal((30, 40)))
    np.save("constant.npy", np.ones((30, 40)))
    for name, note in {"noise": "m(2) is not distinguish", "constant": "equal"}.items():
        text = run(capsys, "estimate", f"{name}.npy", "--dimension", code=4)
        assert note in text
        run(capsys, "estimate", f"{name}.npy")


def test_a_finite_interval_is_an_answer_although_a_moment_is_uncertain(capsys):
    rng = np.random.default_rng(4)
    np.save("few.npy", rng.standard_normal((30, 5)) @ rng.standard_normal((5, 26)))
    assert not sm.estimate(np.load("few.npy")).usable.all()
    assert "95% CI" in run(capsys, "estimate", "few.npy", "--dimension")
    np.save("all.npy", np.random.default_rng(8).standard_normal((6, 28)))
    text = run(capsys, "estimate", "all.npy", "--dimension", "--population", "all")
    assert "undetermined, 95% CI 6.48 to 28.00" in text and "pass population" not in text


def test_align_and_compare(capsys):
    systems = {"phi": PHI, "other": PHI[:, :20] + 0.1}
    text = run(capsys, "align", "phi.npy", "other.npy")
    assert text == f"{sm.alignments(systems)}\n"
    found = run(capsys, "compare", "phi.npy", "other.npy", "--paired", "inputs")
    assert found == f"{sm.compare(systems, paired='inputs')}\n"
    twice = run(capsys, "align", "phi.npy", "phi.npy")
    assert "phi (1)" in twice and "phi (2)" in twice
    np.save("\x1b]0;mine\x07.npy", PHI)  # no name commands the terminal
    text = run(capsys, "compare", "\x1b]0;mine\x07.npy", "phi.npy")
    assert "\x1b" not in text and "?]0;mine?" in text


def test_output(capsys):
    est = sm.estimate(PHI)
    assert run(capsys, "estimate", "phi.npy", "-o", "x.txt") == f"{est}\n"
    assert Path("x.txt").read_text(encoding="utf-8") == f"{est}\n"
    run(capsys, "estimate", "phi.npy", "-o", "x.json")
    assert json.loads(Path("x.json").read_text()) == json.loads(json.dumps(est.to_dict()))


def test_report(capsys):
    call = ("report", "phi.npy", "other.npy", "--paired", "inputs")
    assert run(capsys, *call, "--n-max", 2) == "report.html\n"
    assert "other" in Path("report.html").read_text(encoding="utf-8")


REFUSED = {  # call: what is printed
    "no.npy": "no.npy",
    "phi.xls": "phi.xls",
    "two.npz": "key",
    "two.npz --key c": "'c'",
    "trials.npy": "(repeats, inputs, features), pass --trials (trials=True)",
    "phi.npy other.npy": "pass --shards if they are parts of the inputs",
    "phi.npy --n-max 30": "--n-max: n_max = 30 needs 30 rows and columns; phi is 20 x 25",
    "phi.npy --population 5": "--population: population = 5 must be the number of all",
    "phi.npy --method best": "--method: ",
    "phi.npy --groups five.txt": "--groups: groups must hold 20 labels",
    "phi.npy --groups none.txt": "none.txt",
    "phi.npy --jobs 0": "--n-jobs: n_jobs = 0 is too small",
    "phi.npy --seed -1": "--random-state: random_state = -1",
    "phi.npy -o no/where.json": "no/where.json",
    "phi.npy --transpose --n-max 21": "phi is 25 x 20",
}


@pytest.mark.parametrize("call", REFUSED)
def test_refusals(call, capsys):
    assert REFUSED[call] in reason(capsys, "estimate", *call.split())


FAILURES = {
    MemoryError("Unable to allocate 9 TiB"): (2, "Unable to allocate 9 TiB"),
    MemoryError(): (2, "needs more memory than there is"),
    OSError(28, "No space left on device"): (2, "No space left on device"),
    ImportError("pip install it"): (2, "pip install it"),
    ZeroDivisionError("by\nzero"): (3, "a fault of the program"),
}


def test_every_failure_is_one_line(monkeypatch, capsys):
    for error, (code, message) in FAILURES.items():
        monkeypatch.setattr(command_line, "run", Mock(side_effect=error))
        assert message in reason(capsys, "estimate", "phi.npy", code=code)
    monkeypatch.setattr(command_line, "run", Mock(side_effect=KeyboardInterrupt))
    assert run(capsys, "estimate", "phi.npy", code=130) == ""


def test_parser(capsys):
    for arguments, message in [
        (["--version"], f"spectral-moments {sm.__version__}"),
        (["--help"], "4 the interval of the dimension has no end"),
        (["estimate", "--help"], "--no-center"),
        (["align", "--help"], "--shared-features"),
    ]:
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
        assert message in " ".join(capsys.readouterr().out.split())
    for arguments in ([], ["estimate"], ["estimate", "phi.npy", "--n-max", "x"], ["xyz"]):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux")
def test_streams_that_are_closed_or_full():
    command = f"{sys.executable} -m spectral_moments estimate phi.npy"
    cases = {
        "": (0, ""),
        ">&-": (1, ""),
        ">/dev/full": (1, "the answer could not be written (No space left on device)"),
        "| true": (1, ""),
    }
    for redirection, (code, message) in cases.items():
        script = f"set -o pipefail; {command} {redirection}"
        options = dict(capture_output=True, text=True, timeout=120)
        done = subprocess.run(["bash", "-c", script], **options)
        assert (done.returncode, message in done.stderr) == (code, True), done.stderr
        assert done.stderr.count("\n") <= 1, done.stderr
