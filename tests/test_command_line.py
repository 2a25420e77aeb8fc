"""The command line, through real processes."""

import json
import os
import re
import subprocess
import sys

import h5py
import numpy as np
import pandas as pd
import pytest
from conftest import python
from scipy.io import savemat

from spectral_moments import Linear, __version__, all_cycles, command_line
from spectral_moments.command_line import main, make_parser
from spectral_moments.estimation import METHODS
from spectral_moments.files import load_matrix

PHI = Linear(3).sample(20, 25, random_state=1)


def run(*arguments):
    return python("-m", "spectral_moments.command_line", *arguments)


def test_estimate_of_every_format(tmp_path, capsys):
    np.save(tmp_path / "a.npy", PHI)
    np.savez(tmp_path / "b.npz", phi=PHI, other=-PHI)
    np.savetxt(tmp_path / "c.csv", PHI, delimiter=",", fmt="%.17g")
    tabs = dict(delimiter="\t", fmt="%.17g", header="a\tb", comments="")
    np.savetxt(tmp_path / "d.tsv", PHI, **tabs)
    savemat(tmp_path / "e.mat", {"phi": PHI})
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["session/phi"] = PHI
    keys = {"b.npz": ["--key", "phi"], "f.h5": ["--key", "session/phi"]}
    for path in sorted(tmp_path.iterdir()):
        call = ["estimate", str(path), *keys.get(path.name, []), "--n-max", "3", "--json"]
        assert main(call) == 0
        values = json.loads(capsys.readouterr().out)["values"]
        np.testing.assert_allclose(values, all_cycles(PHI, 3), rtol=1e-12)
    assert json.loads(run(*call).stdout)["values"] == values


def test_trials_and_plot(tmp_path, capsys):
    np.save(tmp_path / "a.npy", PHI)
    np.save(tmp_path / "b.npy", PHI)
    np.save(tmp_path / "both.npy", np.stack([PHI, PHI]))
    plot = tmp_path / "out.png"
    files = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    assert main(["estimate", *files, "--n-max", "2", "--json"]) == 0
    several = json.loads(capsys.readouterr().out)
    both, options = tmp_path / "both.npy", ("--n-max", 2, "--json", "--plot", plot)
    one = json.loads(run("estimate", both, "--trials", *options).stdout)
    assert several["values"] == one["values"]
    assert one["shape"] == [2, 20, 25]
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_simulate(tmp_path):
    result = run(
        "simulate", "rbf", tmp_path / "x.npy", "--rows", 7, "--columns", 9, "--seed", 3
    )
    assert result.returncode == 0
    assert result.stdout.startswith("m(1) = 1\n")
    assert np.load(tmp_path / "x.npy").shape == (7, 9)


def test_calls_repeat(tmp_path, capsys):
    names = [str(tmp_path / name) for name in ("a.npy", "b.npy")]
    for name in names:
        assert main(["simulate", "linear", name, "--rows", "9", "--columns", "8"]) == 0
    np.testing.assert_array_equal(*map(np.load, names))
    capsys.readouterr()
    call = ["estimate", names[0], "--n-max", "3", "--method", "increasing", "--json"]
    answers = []
    for seed in ([], [], ["--seed", "0"], ["--seed", "1"]):
        assert main(call + seed) == 0
        answers.append(json.loads(capsys.readouterr().out)["values"])
    assert answers[0] == answers[1] == answers[2] != answers[3]


HIDDEN = """
import sys
sys.modules["tqdm"] = None
from spectral_moments.command_line import main
sys.exit(main())
"""


def test_terminal_without_tqdm(tmp_path):
    pty = pytest.importorskip("pty")
    np.save(tmp_path / "phi.npy", PHI)
    ours, theirs = pty.openpty()
    call = ["estimate", tmp_path / "phi.npy", "--n-max", "3", "--method", "increasing"]
    streams = dict(capture_output=False, stdout=subprocess.PIPE, stderr=theirs)
    result = python("-c", HIDDEN, *call, **streams)
    os.close(theirs)
    try:
        said = os.read(ours, 1000)
    except OSError:  # nothing was written, and the other end is closed
        said = b""
    os.close(ours)
    assert (result.returncode, said) == (0, b"")
    assert "Spectral moments of 20 inputs x 25 features" in result.stdout


COMMAND = f"{sys.executable} -m spectral_moments.command_line"
TABLE = r"Spectral moments of 20 inputs x 25 features\n(.*\n)+"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux")
@pytest.mark.parametrize(
    ("redirection", "code", "out", "err"),
    [
        (">&-", 1, "", r"spectral-moments: the standard output is closed\n"),
        ("2>&-", 0, TABLE, ""),
        ("<&- >&- 2>&-", 1, "", ""),
        (">/dev/full", 1, "", r"spectral-moments: the answer could .*No space.*\n"),
        ("2>/dev/full", 0, TABLE, ""),
        ("| true", 1, "", ""),
        ("--n-max 99 2>/dev/full", 2, "", ""),
        ("--n-max 99 >&- 2>&-", 2, "", ""),
        ("--help >/dev/full", 0, "", ""),  # argparse itself does not mind
    ],
)
def test_streams_that_are_closed_or_full(tmp_path, redirection, code, out, err):
    np.save(tmp_path / "phi.npy", PHI)
    script = f"set -o pipefail; {COMMAND} estimate phi.npy --n-max 2 {redirection}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code
    assert re.fullmatch(out, done.stdout) and re.fullmatch(err, done.stderr)


def test_a_failing_plot_does_not_lose_the_estimate(tmp_path, capsys, monkeypatch):
    np.save(tmp_path / "phi.npy", PHI)
    call = ["estimate", str(tmp_path / "phi.npy"), "--n-max", "2", "--plot"]
    old = tmp_path / "old.png"
    old.write_bytes(b"old")
    (tmp_path / "folder.png").mkdir()
    for plot in ("no/plot.png", "plot.xyz", "folder.png"):
        assert main([*call, str(tmp_path / plot)]) == 2
        said = capsys.readouterr()
        assert re.fullmatch(TABLE, said.out)
        assert f"{plot}: the plot could not be drawn" in said.err
        assert said.err.count("\n") == 1
    from spectral_moments.results import Estimate

    with monkeypatch.context() as patch:
        patch.setattr(Estimate, "plot", lambda *_, **__: 1 / 0)
        assert main([*call, str(old)]) == 2
    assert re.fullmatch(TABLE, capsys.readouterr().out) and old.read_bytes() == b"old"
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib.figure", None)
        assert main([*call, str(old)]) == 2
    said = capsys.readouterr()
    assert re.fullmatch(TABLE, said.out) and "spectral_moments[plot]" in said.err
    monkeypatch.setenv("MPLBACKEND", "no such backend")
    assert main([*call, str(old)]) == 0
    assert old.read_bytes().startswith(b"\x89PNG")
    assert sorted(os.listdir(tmp_path)) == ["folder.png", "old.png", "phi.npy"]


INTERRUPTED = """
import os, signal, sys
from spectral_moments import command_line, operators

def sample(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)

operators.Linear.sample = sample
sys.exit(command_line.main(["simulate", "linear", "x.npy"]))
"""


def test_interrupt(tmp_path):
    done = python("-c", INTERRUPTED, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "spectral-moments: interrupted\n" and not os.listdir(tmp_path)


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


def test_simulate_keeps_the_old_file(tmp_path, capsys, monkeypatch):
    def fail(file, array):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    path = tmp_path / "x.npy"
    path.write_bytes(b"old")
    monkeypatch.setattr(np, "save", fail)
    assert main(["simulate", "linear", str(path), "--rows", "4", "--columns", "4"]) == 2
    assert "x.npy: cannot be written (No space left on device)" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["x.npy"] and path.read_bytes() == b"old"


def test_import_is_light():
    code = "import sys, spectral_moments.command_line; print('numpy' in sys.modules)"
    assert python("-c", code).stdout == "False\n"  # so that Ctrl-C finds main() running


FRAME = pd.DataFrame([[1.5, 2, 3], [4, np.nan, 6], [7, 8, 9], [1, 2, 4]])
NAMED = FRAME.set_axis(["a", "b", "c"], axis=1)


def read(tmp_path, text, **options):
    (tmp_path / "x.csv").write_text(text)
    return load_matrix(tmp_path / "x.csv", **options)


def test_tables_of_data_frames(tmp_path):
    for frame, text, options in [
        (FRAME, FRAME.to_csv(), dict(index=True)),
        (FRAME, FRAME.to_csv(index=False), dict(header=True)),
        (FRAME, FRAME.to_csv(index=False, header=False), {}),
        (NAMED, NAMED.to_csv(), dict(index=True)),
        (NAMED, NAMED.to_csv(index=False, na_rep="NULL"), {}),
        (NAMED, NAMED.rename_axis("row").to_csv(na_rep="NA"), dict(index=True)),
        (FRAME, FRAME.rename_axis("row").to_csv(), dict(index=True)),
        (NAMED, NAMED.rename(index=str).add_prefix("x").to_csv(), dict(index=True)),
        (FRAME, FRAME.to_csv(header=False), dict(index=True)),
        (FRAME[[0]], FRAME[[0]].to_csv(), dict(index=True)),
        (FRAME[[0]], FRAME[[0]].to_csv(index=False), dict(header=True)),
        (NAMED[["b"]], NAMED[["b"]].to_csv(index=False), {}),
    ]:
        np.testing.assert_array_equal(read(tmp_path, text, **options), frame.to_numpy())
        for choice in options:
            with pytest.raises(ValueError, match=f"looks like an? {choice}.*--{choice}"):
                read(tmp_path, text)
    assert read(tmp_path, FRAME.to_csv(index=False), header=False).shape == (5, 3)
    assert read(tmp_path, NAMED.to_csv(), index=False).shape == (4, 4)


def test_tables_of_other_programs(tmp_path):
    nan = np.nan
    for text, table in [
        (",,\n1,2,3\n", [[nan, nan, nan], [1, 2, 3]]),
        ("NA,nan\nNULL,null\n5,NaN\n", [[nan, nan], [nan, nan], [5, nan]]),
        (",1.5,2\n3,4,5\n", [[nan, 1.5, 2], [3, 4, 5]]),
        ('"a","b"\r\n"1", 2\r\n\r\n3,"4"\r\n', [[1, 2], [3, 4]]),
        ("\ufeffa,b\n1,2\n", [[1, 2]]),
        ("# a,b\n1e3,-inf\n", [[1000, -np.inf]]),
        ("1_2,1_3\n4,5\n", [[4, 5]]),
        ("0.0,1.0\n4,5\n", [[0, 1], [4, 5]]),
    ]:
        np.testing.assert_array_equal(read(tmp_path, text), table)
    (tmp_path / "x.tsv").write_text("\t\n1\t2\n")
    np.testing.assert_array_equal(load_matrix(tmp_path / "x.tsv"), [[nan, nan], [1, 2]])
    for text in ('"","V1"\n"1",0.5\n"2",0.7\n', '"V1"\n"r1",0.5\n', "k,a\n1,5\n2,6\n3,7\n"):
        with pytest.raises(ValueError, match="looks like an index"):
            read(tmp_path, text)


@pytest.fixture
def bad(tmp_path):
    np.save(tmp_path / "trials.npy", np.stack([PHI, PHI]))
    np.save(tmp_path / "small.npy", PHI[:4])
    np.save(tmp_path / "phi.npy", PHI)
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "phi.npy").read_bytes()[:500])
    (tmp_path / "broken.npz").write_bytes(b"not a zip")
    (tmp_path / "broken.mat").write_bytes(b"not a mat")
    np.save(tmp_path / "line.npy", PHI[0])
    np.save(tmp_path / "complex.npy", 1j * PHI)
    np.save(tmp_path / "words.npy", np.array([["a"]]))
    np.save(tmp_path / "holes.npy", np.full((7, 8), np.nan))
    np.savez(tmp_path / "empty.npz")
    (tmp_path / "archive.npy").write_bytes((tmp_path / "empty.npz").read_bytes())
    (tmp_path / "single.npz").write_bytes((tmp_path / "phi.npy").read_bytes())
    with h5py.File(tmp_path / "new.mat", "w", userblock_size=512) as file:
        file["phi"] = PHI
    with open(tmp_path / "new.mat", "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    (tmp_path / "none.csv").write_text("")
    (tmp_path / "names.csv").write_text("a,b\n")
    (tmp_path / "semicolons.csv").write_text("1;2\n" + ";".join("123456789012") + "\n")
    (tmp_path / "commas.csv").write_text("1,5;2,5\n")
    (tmp_path / "rows.csv").write_text("a,1,2\nb,3,4\n")
    (tmp_path / "long.csv").write_text('1,2\n3,"' + "4" * 200_000 + '"\n')
    (tmp_path / "latin.csv").write_bytes(b"1,\xe9\n")
    (tmp_path / "ragged.csv").write_text("1,2\n3\n")
    (tmp_path / "words.csv").write_text("1,2\n3,x\n")
    np.savez(tmp_path / "two.npz", a=PHI, b=PHI)
    (tmp_path / "folder.npy").mkdir()
    os.mkfifo(tmp_path / "fifo.npy")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.npy"], "no such file"),
        (["phi.xls"], "unknown ending"),
        (["cut.npy"], "cut.npy"),
        (["objects.npy"], "not a plain .npy"),
        (["broken.npz"], "broken.npz"),
        (["broken.mat"], "Matlab"),
        (["ragged.csv"], "different lengths"),
        (["words.csv"], "'x' in line 2 is not a number; is ',' the separator?\n"),
        (["rows.csv"], "'a' in line 1 is not a number; is ',' the separator? Or pass --he"),
        (["semicolons.csv"], "'1;2;3;4;5;6;7;8;9;0;...' in line 2 is not a number; is ','"),
        (["commas.csv"], "'5;2' in line 1 is not a number; is ','"),
        (["none.csv"], "none.csv: holds no numbers"),
        (["names.csv"], "names.csv: holds no numbers"),
        (["long.csv"], "long.csv: cannot be read"),
        (["latin.csv"], "latin.csv: cannot be read"),
        (["archive.npy"], "archive.npy: is an archive"),
        (["single.npz"], "single.npz: is not a .npz archive"),
        (["empty.npz"], "empty.npz: holds no arrays"),
        (["new.mat"], "save it with save(..., '-v7'), or read it with h5py"),
        (["phi.npy", "--key", "a"], "leave out --key"),
        (["phi.npy", "--no-header"], "are for .csv and .tsv files"),
        (["phi.npy", "--trials"], "phi.npy: has an array of shape (20, 25); leave out"),
        (["line.npy"], "line.npy: has an array of shape (25,); it must have two axes"),
        (["line.npy", "line.npy"], "it must have two axes"),
        (["trials.npy", "trials.npy"], "must hold one matrix"),
        (["complex.npy"], "complex.npy: the array is complex"),
        (["words.npy"], "words.npy: has an array of <U1, not of numbers"),
        (["holes.npy"], "holes.npy: the array has only NaN entries"),
        (["folder.npy"], "folder.npy: is a folder"),
        (["fifo.npy"], "fifo.npy: is not a regular file"),
        (["phi.npy", "--seed", "-1"], "phi.npy: --seed = -1 is too small"),
        (["two.npz"], "two.npz: pass --key with one of a, b"),
        (["two.npz", "--key", "c"], "has no array 'c', only a, b"),
        (["trials.npy"], "pass --trials"),
        (["phi.npy", "small.npy"], "different shapes"),
        (["small.npy", "--n-max", "6"], "small.npy: --n-max = 6 exceeds"),
        (["phi.npy", "--method", "best"], "method = 'best'"),
    ],
)
def test_errors(bad, arguments, message, capsys):
    files = [str(bad / a) if "." in a else a for a in arguments]
    assert main(["estimate", *files]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.err.count(str(bad)) <= len(files)
    assert captured.out == ""


def test_failing_process(bad):
    result = run("estimate", bad / "nothing.npy")
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr


def test_parser(tmp_path, capsys):
    assert main(["simulate", "linear", str(tmp_path / "out.csv")]) == 2
    assert "out.csv: the ending must be .npy" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
    for arguments, message in [
        (["--version"], f"spectral-moments {__version__}"),
        (["estimate", "--help"], ", ".join(METHODS)),
        (["simulate", "--help"], "so that a call repeats"),
    ]:
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
        said = capsys.readouterr().out
        assert message in " ".join(said.split())
    with pytest.raises(SystemExit, match="2"):
        main([])
    with pytest.raises(SystemExit, match="2"):
        make_parser().parse_args(["estimate", "x.csv", "--header", "--no-header"])
