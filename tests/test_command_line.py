"""The command line, through real processes."""

import functools
import io
import json
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from conftest import ROOT, peak_memory, python
from scipy.io import savemat

import spectral_moments as sm
from spectral_moments import Linear, Stream, __version__, estimate, naive
from spectral_moments.engine.stream import origin_of
from spectral_moments.io import command_line, files
from spectral_moments.io.command_line import main

PHI = Linear(3).sample(20, 25, random_state=1)
MANY = Linear(5).sample(3000, 12, random_state=2)
LABELS = np.repeat(np.arange(10), 2)
QUIET = pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    "Every test works in a folder of its own, with a small matrix and a tall one."
    monkeypatch.chdir(tmp_path)
    np.save("phi.npy", PHI)
    np.save("many.npy", MANY)


def written():
    "What a test has written there."
    return sorted({*os.listdir()} - {"phi.npy", "many.npy"})


def test_trials_and_plots(capsys):
    np.save("both.npy", np.stack([PHI, PHI]))
    trials = ("--trials", "--n-max", 2)
    found = answer(capsys, "phi.npy", "phi.npy", *trials)
    assert found["shapes"] == {"phi": [2, 20, 25]}
    for name in ("plot.PNG", "plot", "plot.pdf", "plot.svg"):
        assert answer(capsys, "both.npy", *trials, "--plot", name) == found
        assert os.path.getsize(name) > 1000
    assert Path("plot.PNG").read_bytes().startswith(b"\x89PNG")


def test_calls_repeat(capsys):
    names = ["a.npy", "b.npy"]
    for name in names:
        call = ["simulate", "rbf", name, "--rows", "9", "--columns", "8", "--seed", "3"]
        assert main(call) == 0 and capsys.readouterr().out.startswith("m(1) = 1\n")
    np.testing.assert_array_equal(*map(np.load, names))
    assert np.load(names[0]).shape == (9, 8)
    call = ["estimate", names[0], "--n-max", "3", "--method", "increasing", "--json"]
    answers = []
    for seed in ([], [], ["--seed", "0"], ["--seed", "1"]):
        assert main(call + seed) == 0
        answers.append(json.loads(capsys.readouterr().out)["values"])
    assert answers[0] == answers[1] == answers[2] != answers[3]


def test_terminals(capsys, monkeypatch):
    "Neither a bar without tqdm nor a matrix from the keyboard; elsewhere lines."
    call = ["estimate", "many.npy", "--n-max", "2"]
    with monkeypatch.context() as patch:
        patch.setattr(logging.root, "handlers", [])  # as where no test is run
        patch.setattr(logging.root, "level", logging.WARNING)
        assert main([*call, "--stream", "--verbose"]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines()[-1] == "3000 rows" and "3000 inputs" in said.out
    ours, theirs = pytest.importorskip("pty").openpty()
    os.write(ours, b"\x04")  # the end, for whoever reads
    with open(theirs, "r+b", buffering=0) as terminal:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(terminal))
        assert "is a terminal" in reason(capsys, "-")
    os.close(ours)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main([*call, "--method", "increasing"]) == 0
    said = capsys.readouterr()
    assert said.err == "" and "3000 inputs x 12 features" in said.out


COMMAND = f"{sys.executable} -m spectral_moments"
TABLE = r"Spectral moments of 20 inputs x 25 features, centred.*\n(.*\n)+"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux")
@pytest.mark.parametrize(
    ("redirection", "code", "out", "err"),
    [
        (">&-", 1, "", r"spectral-moments: the standard output is closed\n"),
        ("<&- >&- 2>&-", 1, "", ""),
        (">/dev/full", 1, "", r"spectral-moments: the answer could .*No space.*\n"),
        ("2>/dev/full", 0, TABLE, ""),
        ("| true", 1, "", ""),
        ("--n-max 99 2>/dev/full", 2, "", ""),
    ],
)
def test_streams_that_are_closed_or_full(redirection, code, out, err):
    script = f"set -o pipefail; {COMMAND} estimate phi.npy --n-max 2 {redirection}"
    options = dict(capture_output=True, text=True, timeout=120)
    done = subprocess.run(["bash", "-c", script], **options)
    assert done.returncode == code
    assert re.fullmatch(out, done.stdout) and re.fullmatch(err, done.stderr)


def test_a_failing_plot_does_not_lose_the_estimate(capsys, monkeypatch):
    call = ["estimate", "phi.npy", "--n-max", "2", "--plot"]
    (old := Path("old.png")).write_bytes(b"old")
    Path("folder.png").mkdir()
    assert main([*call, "folder.png"]) == 2
    said = capsys.readouterr()
    assert re.fullmatch(TABLE, said.out) and said.err.count("\n") == 1
    assert "folder.png: the plot could not be drawn" in said.err
    with monkeypatch.context() as patch:
        patch.setattr(sm.Estimate, "plot", lambda *_, **__: 1 / 0)
        assert main([*call, str(old)]) == 2
    assert re.fullmatch(TABLE, capsys.readouterr().out) and old.read_bytes() == b"old"
    monkeypatch.setenv("MPLBACKEND", "no such backend")
    assert main([*call, str(old)]) == 0
    assert old.read_bytes().startswith(b"\x89PNG")
    assert written() == ["folder.png", "old.png"]


def test_a_plot_that_cannot_be_is_refused_before_the_work(capsys, monkeypatch):
    call = ["estimate", "phi.npy", "--n-max", "2", "--plot"]
    for module, name in ((sm, "estimate"), (command_line, "_streamed")):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("it began"))
    refused = {"plot.foo": r"ends in \.foo; use \.png", "no/plot.png": "there is no folder"}
    for plot, reason in refused.items():
        for more in ([], ["--stream"]):
            assert main([*call, plot, *more]) == 2
            said = capsys.readouterr()
            assert not said.out and said.err.count("\n") == 1
            assert re.search(f"{plot}: .*{reason}", said.err)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main([*call, "plot.png"]) == 2
    said = capsys.readouterr()
    assert not said.out and "spectral_moments[plot]" in said.err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (MemoryError("Unable to allocate 9 TiB"), 2, "Unable to allocate 9 TiB"),
        (MemoryError(), 2, "needs more memory than there is"),
        (OSError(28, "No space left on device"), 2, "No space left on device"),
        (ZeroDivisionError("by zero"), 3, "a fault of the program"),
        (RecursionError("deep\ndown"), 3, "deep"),
    ],
)
def test_every_failure_is_one_line(monkeypatch, capsys, error, code, message):
    def fail(arguments):
        raise error

    monkeypatch.setattr(command_line, "_estimate", fail)
    assert main(["estimate", "x.npy"]) == code
    said = capsys.readouterr()
    assert message in said.err and said.err.count("\n") == 1 and said.out == ""


def test_import_is_light():
    code = "import sys, spectral_moments.io.command_line; print('numpy' in sys.modules)"
    assert python("-c", code).stdout == "False\n"  # so that Ctrl-C finds main() running


@pytest.fixture
def bad():
    arrays = dict(small=PHI[:4], trials=np.stack([PHI, PHI]), line=PHI[0])
    arrays |= dict(objects=np.array([{}], dtype=object), words=np.array([["a"]]))
    arrays |= dict(complex=1j * PHI, holes=np.full((7, 8), np.nan))
    arrays |= dict(seven=MANY[:7], five=MANY[:5], g=LABELS, h=LABELS[:, None])
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)
    np.savez("empty.npz")
    np.savez("two.npz", a=PHI, b=PHI)
    with h5py.File("two.mat", "w", userblock_size=512) as file:
        file["a"], file["b"] = PHI, PHI
    whole = Path("phi.npy").read_bytes()
    for name, content in {
        "cut.npy": whole[:500],
        "broken.npz": b"not a zip",
        "broken.mat": b"not a mat",
        "archive.npy": Path("empty.npz").read_bytes(),
        "single.npz": whole,
        "line.csv": b"1,2\n3,5\n",
        "semicolons.csv": b"1;2\n1;2;3;4;5;6;7;8;9;0;1;2\n",
        "commas.csv": b"1,5;2,5\n",
        "rows.csv": b"a,1,2\nb,3,4\n",
        "long.csv": b'1,2\n3,"' + b"4" * 200_000 + b'"\n',
        "words.csv": b"1,2\n3,x\n",
        "header.csv": b"0,1,2\n5,6,7\n8,9,5\n",
        "index.csv": b",a,b\n0,5,6\n1,8,9\n",
        "g.txt": "".join(f"movie {x}\n" for x in LABELS).encode() + b"\n",
        "five.txt": b"1\n2\n3\n4\n5\n" * 5,
        "w.txt": "".join(f"{i}\n" for i in range(1, 21)).encode(),
        "bytes.txt": b"\xff\xfe\xfa",
    }.items():
        Path(name).write_bytes(content)


REFUSED = {  # call: what is said
    "phi.xls": "unknown ending",
    "cut.npy": "cut.npy",
    "objects.npy": "not a plain .npy",
    "broken.npz": "broken.npz",
    "broken.mat": "Matlab",
    "words.csv": "'x' in line 2 is not a number; is ',' the separator? Is",
    "rows.csv": "is ',' the separator? Is the first line or column names? Options",
    "semicolons.csv": "'1;2;3;4;5;6;7;8;9;0;...' in line 2 is not a number; is ','",
    "commas.csv": "'5;2' in line 1 is not a number; is ','",
    "long.csv": "long.csv: cannot be read",
    "archive.npy": "archive.npy: is an archive",
    "single.npz": "single.npz: cannot be read (File is not a zip",
    "empty.npz": "empty.npz: holds no arrays",
    "two.mat": "two.mat: pass --key with one of a, b",
    "phi.npy --key a": "leave out --key",
    "phi.npy --no-header": "is no text table; leave out --header",
    "phi.npy --trials": "(20, 25), and is one matrix; leave out --trials",
    "line.npy": "line.npy: has an array of shape (25,), and must have two axes",
    "line.npy line.npy --trials": "must have two axes",
    "trials.npy trials.npy --trials": "must have two axes",
    "trials.npy trials.npy --shards": "must have two axes",
    "phi.npy phi.npy": "pass --shards if they are parts of the inputs",
    "no-*.npy": "no-*.npy: no file fits this pattern",
    "phi.npy line.csv --shards": "parts have shapes (2, 2), (20, 25)",
    "phi.npy --groups-key a": "holds no labels of rows; leave out --groups-",
    "complex.npy": "complex.npy: the array is complex",
    "words.npy": "words.npy: has an array of <U1, not of numbers",
    "holes.npy": "holes.npy: the array has only NaN entries",
    "phi.npy --seed -1": "phi.npy: --seed = -1 is too small",
    "two.npz": "two.npz: pass --key with one of a, b",
    "header.csv": "looks like a header; pass --header or --no-header",
    "index.csv": "pass --index to leave it out, or --no-index to keep it",
    "two.npz --key c": "has no array 'c', only a, b",
    "trials.npy": "--trials are a first of three",
    "phi.npy small.npy --trials": "different shapes",
    "small.npy --n-max 6": "small.npy: --n-max = 6 exceeds",
    "phi.npy --method best": "method = 'best'",
    "phi.npy --population 5 inf": "phi.npy: --population of inputs = 5 is smaller than "
    "the 20",
    "phi.npy --groups five.txt": ": --groups has shape (25,); it must hold 20 labels",
    "phi.npy --column-groups g.txt": ": --column-groups has shape (20,); it must hold 25",
    "phi.npy --groups bytes.txt": "bytes.txt: the groups",
    "phi.npy --groups no.txt": "no.txt: the groups",
    "phi.npy --groups no.npy": "no.npy: no such file",
    "phi.npy --weights g.txt": "g.txt: the row_weights",
    "phi.npy --method increasing --jobs 0": "--jobs = 0 is too small",
    "phi.npy --checkpoint x": "--checkpoint belongs",
    "many.npy --stream --population all inf": "--population: the number is not known yet",
    "many.npy --stream --weights five.txt": "--weights has 25 weights, and there are more",
    "many.npy --stream --method naive": "--stream: leave out --method",
    "many.npy seven.npy --stream --trials": "files have different shapes",
    "trials.npy --stream": "--trials are a first of three",
    "no.npy --stream": "no.npy: no such file",
    "seven.npy --stream --n-max 4": "seven.npy: --n-max = 4; a stream has orders",
    "five.npy --stream": "five.npy: the stream has 5 distinct rows",
}


@pytest.mark.parametrize("call", REFUSED)
def test_errors(bad, call, capsys):
    arguments = call.split()
    said = reason(capsys, *arguments)
    assert REFUSED[call] in said
    assert sum(said.count(name) for name in {*arguments} if "." in name) <= len(arguments)


def test_labels_are_of_one_kind(capsys):
    labels = ["--groups", "a.txt", "--groups-key", "movie"]
    with pytest.raises(SystemExit):
        main(["estimate", "phi.npy", *labels])
    assert "not allowed with argument --groups" in capsys.readouterr().err


def test_parser(capsys):
    assert main(["simulate", "linear", "out.csv"]) == 2
    assert "out.csv: the ending must be .npy" in capsys.readouterr().err
    for option, value in (("--rows", -2), ("--columns", 0), ("--dim", 0), ("--n-max", 0)):
        call = ["simulate", "rbf", "o.npy", option, str(value)]
        assert main(call) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"spectral-moments: {option} = {value} is too small")
    odd = reason(capsys, "rbf", "o.npy", "--scale=-1", command="simulate")
    assert "--scale is not positive definite" in odd
    assert not written()
    for arguments, message in [
        (["--version"], f"spectral-moments {__version__}"),
        (["estimate", "--help"], "all_cycles, sums, increasing, blocks, sketched"),
        (["align", "--help"], "--no-center"),
    ]:
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
        said = capsys.readouterr().out
        assert message in " ".join(said.split())
    wrong = lambda size: ["estimate", "phi.npy", "--population", size, "all"]
    for arguments in ([], *map(wrong, ("x", "0", "-3", "1.5"))):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
    assert "neither a number, 'all' nor 'inf'" in capsys.readouterr().err


# --- standard input, streams, populations, groups -----------------------------------------


def answer(capsys, *arguments):
    "What a call prints, as JSON."
    code = main(["estimate", *map(str, arguments), "--json"])
    said = capsys.readouterr()
    assert code == 0, said.err
    return json.loads(said.out)


def reason(capsys, *arguments, command="estimate"):
    "The one line that a failing call prints."
    assert main([command, *map(str, arguments)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    return said.err


def send(monkeypatch, content):
    "Let the standard input hold these bytes."
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
    monkeypatch.setattr(sys, "stdin", stdin)


def test_standard_input(capsys, monkeypatch):
    np.savetxt("a.csv", PHI, delimiter=",", fmt="%.17g")
    expected = answer(capsys, "phi.npy", "--n-max", 3)
    for name in ("phi.npy", "a.csv"):
        send(monkeypatch, Path(name).read_bytes())
        assert answer(capsys, "-", "--n-max", 3) == expected
    send(monkeypatch, Path("phi.npy").read_bytes())
    both = answer(capsys, "-", "phi.npy", "--trials", "--n-max", 2)
    assert both["shapes"] == {"phi": [2, 20, 25]}
    for content, words in [
        (b"", "standard input: holds no numbers"),
        (b"x", "standard input: holds no numbers"),
        (b"1,2\n3,4\n", "standard input: --n-max = 4"),
    ]:
        send(monkeypatch, content)
        assert words in reason(capsys, "-")
    assert "read once only" in reason(capsys, "-", "-", "--trials")
    send(monkeypatch, Path("phi.npy").read_bytes())
    aligned = main(["align", "-", "phi.npy", "--shared-features", "--json"])
    assert aligned == 0
    told = json.loads(capsys.readouterr().out)
    assert told["value"] == pytest.approx(1)
    assert told["names"] == ["standard input", "phi.npy"]
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input: is closed" in reason(capsys, "-")


FLAGS = {  # of the command: options of the library
    "--population inf all --no-center": dict(population=(None, 25), center=False),
    "--population ALL INF": dict(population=(20, None)),
    "--population 100 40": dict(population=(100, 40)),
    "--population all all --no-center": dict(population=(20, 25), center=False),
    "--groups g.npy": dict(groups=LABELS),
    "--groups h.npy": dict(groups=LABELS),
    "--groups g.txt": dict(groups=LABELS),
    "--column-groups five.txt": dict(column_groups=[1, 2, 3, 4, 5] * 5),
    "--weights w.txt": dict(row_weights=np.arange(1, 21)),
    "--method increasing --jobs 1 --seed 2": dict(method="increasing", random_state=2),
    "--method increasing --jobs 2 --seed 2": dict(method="increasing", random_state=2),
}


@QUIET
@pytest.mark.parametrize("flags", FLAGS)
def test_flags_are_options(bad, flags, capsys):
    found = answer(capsys, "phi.npy", "--n-max", 3, *flags.split())
    expected = estimate(PHI, 3, **FLAGS[flags])
    np.testing.assert_allclose(found["values"], expected.values, rtol=1e-12)
    assert found["settings"] == json.loads(json.dumps(expected.settings))
    if "all all" in flags:
        np.testing.assert_allclose(found["values"], naive(PHI, 3), rtol=1e-12)


@QUIET
def test_dimension(capsys):
    expected = estimate(PHI, 2).dimension()
    call = ("phi.npy", "--dimension")
    found = answer(capsys, *call)
    assert found["dimension"] == expected.to_dict()
    assert set(found) == {"schema", "dimension", "shapes", "settings", "notes"}
    assert main(["estimate", *map(str, call)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"dimension {expected}"
    assert answer(capsys, *call, "--no-center")["dimension"] != found["dimension"]


@QUIET
def test_stream(capsys, monkeypatch):
    path = "many.npy"
    whole = Stream(12, 3, origin=origin_of(MANY)).update(MANY).estimate()
    call = ("--n-max", 3, "--stream")
    first = answer(capsys, path, *call)
    np.testing.assert_allclose(first["values"], whole.values, rtol=1e-12)
    assert first["shapes"]["phi"] == [1, 3000, 12]
    np.savetxt("a.csv", MANY, delimiter=",", fmt="%.17g")
    assert answer(capsys, "a.csv", *call) == first
    send(monkeypatch, Path(path).read_bytes())
    assert answer(capsys, "-", *call) == first
    trials = ("--n-max", 2, "--stream", "--trials")
    two = answer(capsys, path, path, *trials)
    np.save("t.npy", np.stack([MANY, MANY]))
    assert answer(capsys, "t.npy", *trials) == two
    assert two["shapes"]["phi"] == [2, 3000, 12]


#: flags of the options of one system, and what the library is told
TOLD = {
    "--population 4000 all": dict(population=(4000, 12)),
    "--noise .1": dict(noise=0.1),
    "--weights w.npy": dict(row_weights=1.0 + np.arange(3000) % 3),
    "--column-groups c.npy": dict(column_groups=np.arange(12) // 2),
    "--column-weights v.npy": dict(column_weights=1.0 + np.arange(12)),
    "--groups g.npy --weights w.npy": dict(
        groups=np.arange(3000) // 7, row_weights=1.0 + np.arange(3000) % 3
    ),
}


def write_told():
    "The files that these flags name."
    np.save("g.npy", np.arange(3000) // 7)
    np.save("w.npy", 1.0 + np.arange(3000) % 3)
    np.save("c.npy", np.arange(12) // 2)
    np.save("v.npy", 1.0 + np.arange(12))


@QUIET
@pytest.mark.parametrize("flags", TOLD)
def test_a_stream_takes_every_option(capsys, monkeypatch, flags):
    write_told()
    monkeypatch.setattr(sm, "row_batches", functools.partial(sm.row_batches, size=512))
    n_max = 1 if "groups" in TOLD[flags] else 2
    expected = estimate(MANY, n_max, **TOLD[flags])
    call = ["many.npy", *flags.split(), "--n-max", n_max, "--stream"]
    for _ in range(2):  # the second finds all rows in the checkpoint
        found = answer(capsys, *call, "--checkpoint", "state")
        np.testing.assert_allclose(found["values"], expected.values, rtol=1e-8)
    assert abs(expected.values - estimate(MANY, n_max).values).max() > 1e-3
    other = [x for x in call if x not in flags.split()]
    assert "is a checkpoint with other" in reason(capsys, *other, "--checkpoint", "state")


@QUIET
@pytest.mark.parametrize("flags", TOLD)
def test_align_takes_every_option(capsys, flags):
    write_told()
    small = MANY[:, :7] + np.random.default_rng(3).standard_normal((3000, 7))
    np.save("b.npy", small)
    np.save("c7.npy", np.arange(7) // 2)
    np.save("v7.npy", 1.0 + np.arange(7))
    options = dict(TOLD[flags])
    both = dict(
        column_groups=np.arange(7) // 2, column_weights=1.0 + np.arange(7), noise=0.1
    )
    for name in both.keys() & options.keys():
        options[name] = {"a": options[name], "b": both[name]}
    if "population" in options:
        options["population"] = 4000, {"a": 12, "b": 7}
    expected = sm.alignments({"a": MANY, "b": small}, **options)["a", "b"]
    more = {"all": "all all", "c.npy": "c.npy c7.npy", "v.npy": "v.npy v7.npy"}
    words = " ".join(more.get(word, word) for word in flags.split()).split()
    assert main(["align", "many.npy", "b.npy", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(found["value"], expected.value, rtol=1e-9)


def test_a_stream_goes_on_from_its_checkpoint(capsys, monkeypatch):
    path, state = "many.npy", "state"
    call = ("--n-max", 3, "--stream")
    expected = answer(capsys, path, *call, "--seed", 1)
    small = functools.partial(sm.row_batches, size=512)
    monkeypatch.setattr(sm, "row_batches", small)
    uninterrupted = answer(capsys, path, *call)
    call = (path, *call, "--checkpoint", state)
    update, count = Stream.update, [0]

    def interrupted(self, rows, **beside):
        count[0] += 1
        if count[0] == 3:
            raise KeyboardInterrupt
        return update(self, rows, **beside)

    with monkeypatch.context() as patch:
        patch.setattr(Stream, "update", interrupted)
        assert main(["estimate", *map(str, call)]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert written() == ["state"]
    assert Stream.load(state).n_rows == 1024
    for _ in range(2):  # the second finds all rows in the checkpoint
        assert answer(capsys, *call) == uninterrupted
    assert answer(capsys, *call)["values"] != expected["values"]
    np.save(path, np.concatenate([MANY, MANY[:700]]))  # rows were added
    with monkeypatch.context() as patch:
        patch.setattr(Stream, "update", lambda s, x: count.append(len(x)) or update(s, x))
        assert answer(capsys, *call)["shapes"]["phi"] == [1, 3700, 12]
    assert sum(count[1:]) == 700
    assert "with other random_state" in reason(capsys, *call, "--seed", 5)
    assert "with other n_max" in reason(capsys, *call, "--n-max", 2)
    changed = np.concatenate([MANY, MANY[:700]])
    changed[17, 3] += 1e-9
    np.save(path, changed)
    assert "of other data: the first 3700 rows have changed" in reason(capsys, *call)
    np.save(path, MANY)
    assert "of 3700 rows, and there are 3000 now" in reason(capsys, *call)
    Stream(12, 3).update(MANY).save(state)
    assert "is not a checkpoint of this command" in reason(capsys, *call)
    Path(state).write_bytes(b"PK")
    assert "not a complete file of a stream" in reason(capsys, *call)
    same = (*call[:-1], path)  # the data in the place of the checkpoint
    assert "of a stream (it is of another kind)" in reason(capsys, *same)
    np.testing.assert_array_equal(np.load(path), MANY)


def test_checkpoints_in_time(capsys, monkeypatch):
    monkeypatch.setattr(command_line, "_EVERY", -1.0)
    small = functools.partial(sm.row_batches, size=512)
    monkeypatch.setattr(sm, "row_batches", small)
    saved, save = [], Stream.save
    monkeypatch.setattr(Stream, "save", lambda s, p: saved.append(s.n_rows) or save(s, p))
    answer(capsys, "many.npy", "--stream", "--checkpoint", "state")
    assert saved == [512, 1024, 1536, 2048, 2560, 3000, 3000]  # and once at the end


#: the call of a stream with a checkpoint
STREAMED = ["estimate", "many.npy", "--n-max", "2", "--stream", "--checkpoint", "state"]


def test_a_checkpoint_that_cannot_be_is_refused_before_the_work(capsys, monkeypatch):
    call, update = STREAMED[1:-1], Stream.update
    monkeypatch.setattr(Stream, "update", lambda *_: pytest.fail("it began"))
    Path("folder").mkdir()
    Path("target").write_text("other")
    Path("link").symlink_to("target")
    for name, words in [
        ("no/such", "No such file"),
        ("folder", "is no file that can be written"),
        ("link", "is a link; name the file itself"),
    ]:
        assert words in reason(capsys, *call, name)
    fcntl = pytest.importorskip("fcntl")
    with open(".state.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "another run writes to it" in reason(capsys, *call, "state")
    monkeypatch.setattr(Stream, "update", update)
    Path("state.new").symlink_to("target")  # where others might write
    assert main(STREAMED) == 0
    assert Path("target").read_text() == "other"
    assert written() == ["folder", "link", "state", "state.new", "target"]


def test_the_answer_is_printed_if_the_checkpoint_fails(capsys, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(STREAMED) == 2
    said = capsys.readouterr()
    assert said.out.startswith("Spectral moments of 3000 inputs x 12 features")
    assert "state: the checkpoint could not be written (No space left" in said.err
    assert not written()


TERMINATED = """
import os, signal, sys
import functools
import spectral_moments as sm
from spectral_moments.io import command_line
from spectral_moments.engine.stream import Stream
sm.row_batches = functools.partial(sm.row_batches, size=500)
update = Stream.update

def killed(self, rows):
    if self.n_rows == 1500:
        os.kill(os.getpid(), signal.SIGTERM)
    return update(self, rows)

Stream.update = killed
sys.exit(command_line.main(sys.argv[1:]))
"""


def test_sigterm_is_heard(capsys):
    done = python("-c", TERMINATED, *STREAMED)
    assert done.returncode == 143 and done.stderr == "spectral-moments: interrupted\n"
    assert written() == ["state"]
    assert Stream.load("state").n_rows in (1500, 2000)
    before = signal.getsignal(signal.SIGTERM)
    resumed = answer(capsys, *STREAMED[1:])
    assert signal.getsignal(signal.SIGTERM) is before
    whole = answer(capsys, *STREAMED[1:5])
    np.testing.assert_allclose(resumed["values"], whole["values"], rtol=1e-9)


def test_shards(capsys):
    for k, part in enumerate(np.split(MANY, [500, 1700])):
        np.save(f"shard-{k}.npy", part)
    names = sorted(Path().glob("shard-*.npy"))
    for more in ([], ["--stream"]):
        expected = answer(capsys, "many.npy", "--n-max", 2, *more)["values"]
        for given in (["shard-*.npy"], [*names, "--shards"]):
            found = answer(capsys, *given, "--n-max", 2, *more)
            assert found["shapes"]["phi"] == [1, 3000, 12]
            np.testing.assert_allclose(found["values"], expected, rtol=1e-9)


def test_shards_of_trials(capsys):
    trials = MANY.reshape(2, 1500, 12)
    for k, part in enumerate(np.split(trials, 3, axis=1)):
        np.save(f"part-{k}.npy", part)
    flags = ("--shards", "--trials", "--n-max", 2)
    found = answer(capsys, "part-*.npy", *flags)
    assert found["shapes"]["phi"] == [2, 1500, 12]


@QUIET
def test_groups_in_the_file(capsys, monkeypatch):
    labels = np.repeat(np.arange(600), 5)
    frame = pd.DataFrame(MANY).add_prefix("c").assign(movie=[f"m{x}" for x in labels])
    frame.to_csv("a.csv", index=False)
    frame.to_parquet("a.parquet")
    np.savez("a.npz", x=MANY, movie=labels)
    Path("labels.txt").write_text("".join(f"{x}\n" for x in labels))
    expected = estimate(MANY, 2, groups=labels).values
    monkeypatch.setattr(files, "BATCH", 9_000)  # batches that cut groups
    named = ("--groups-key", "movie")
    for stream in ([], ["--stream", "--checkpoint", "state"], ["--stream"]):
        for given in (
            ["a.csv", *named],
            ["a.parquet", *named],
            ["a.npz", "--key", "x", *named],
            ["many.npy", "--groups", "labels.txt"],
        ):
            Path("state").unlink(missing_ok=True)
            for _ in range(1 + ("--checkpoint" in stream)):
                found = answer(capsys, *given, "--n-max", 2, *stream)
                np.testing.assert_allclose(found["values"], expected, rtol=1e-8)
    np.savez("b.npz", x=MANY, movie=labels[::-1] % 7)
    call = ("b.npz", "--key", "x", *named, "--stream")
    assert "rows of one group must follow each other" in reason(capsys, *call)
    call = ("many.npy", "--groups", "short.txt", "--stream")
    Path("short.txt").write_text("a\nb\n")
    assert "--groups has 2 labels, and there are more rows" in reason(capsys, *call)


def test_no_answer_has_its_code(capsys):
    np.save("a.npy", np.ones((20, 8)))
    for more in ([], ["--json"]):
        assert main(["estimate", "a.npy", "--dimension", *more]) == 4
        assert "dimension" in capsys.readouterr().out


def test_names_do_not_command_the_terminal(capsys):
    odd = "a\x1b[31m.npy"
    np.save(odd, PHI)
    assert main(["align", str(odd), str(odd), "--shared-features"]) == 0
    assert main(["estimate", str(odd), "--n-max", "99"]) == 2
    assert main(["estimate", "\x1b[31m.npy"]) == 2
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err and "a?[31m.npy" in said.out


def test_a_url(capsys):
    store = pytest.importorskip("fsspec").filesystem("memory")
    store.put("phi.npy", "/shelf/a.npy")
    expected = answer(capsys, "phi.npy", "--n-max", 2)
    for more in ([], ["--stream"]):
        found = answer(capsys, "memory://shelf/a.npy", "--n-max", 2, *more)
        np.testing.assert_allclose(found["values"], expected["values"], rtol=1e-9)


def test_a_stream_takes_the_memory_of_a_batch(capsys):
    np.save("a.npy", np.resize(MANY, (400_000, 12)))  # 38 MB
    call = ["estimate", "a.npy", "--n-max", "2", "--stream"]
    assert peak_memory(main, call) < 24e6
    assert "400000 inputs" in capsys.readouterr().out


# --- the page of recipes ------------------------------------------------------------------


@pytest.fixture
def pantry(tmp_path, monkeypatch):
    "The files that the recipes are about."
    rng = np.random.default_rng(3)
    process = Linear(5)
    layer, frames = (process.sample(100, Q, random_state=2) for Q in (30, 40))
    days = layer + 0.3 * rng.standard_normal((3, *layer.shape))
    np.save("layer.npy", layer)
    np.save("trials.npy", days)
    for day, name in zip(days, ("monday", "tuesday", "wednesday")):
        np.save(f"{name}.npy", day)
    np.save("frames.npy", frames)
    Path("movies.txt").write_text("".join(f"movie {i // 10}\n" for i in range(100)))
    with h5py.File("recording.h5", "w") as file:
        file["session1/rates"] = layer
    frame = pd.DataFrame(layer).add_prefix("unit ")
    frame.to_parquet("recording.parquet")
    frame.to_csv("recording.csv")
    frame.to_csv("recording.csv.gz")
    savemat("recording.mat", {"rates": layer})
    pytest.importorskip("zarr").save_array("recording.zarr", layer)
    np.save("large.npy", MANY)
    frame.assign(document=np.arange(100) // 5).to_parquet("tokens.parquet")
    for k, part in enumerate(np.split(layer, 4)):
        np.save(f"shard-{k}.npy", part)
    command = Path("spectral-moments")  # for the pipes
    command.write_text(f'#!/bin/sh\nexec {COMMAND} "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


def test_recipes(pantry, capsys):
    page = (ROOT / "nbs/recipes.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(sh|text)\n(.*?)```", page, flags=re.S)
    assert page.count("\n**") >= 12
    said, count = "", 0
    for kind, text in blocks:
        if kind == "text":
            assert said == text.replace("version ...", f"version {__version__}")
            continue
        for line in text.replace("\\\n", "").splitlines():
            if "|" in line:
                done = subprocess.run(line, shell=True, capture_output=True, text=True)
                code, said, complaint = done.returncode, done.stdout, done.stderr
            else:
                program, *arguments = shlex.split(line)
                assert program == "spectral-moments"
                code = main(arguments)
                said, complaint = capsys.readouterr()
            assert (code, complaint) == (0, "") and said, line
            count += 1
    assert count >= 18 and os.path.exists("moments.png") and os.path.exists("dimension.pdf")
