"""The command line, through real processes."""

import json
import os
import subprocess
import sys

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat
from scipy.sparse import csc_array

from spectral_moments import Linear, __version__, all_cycles
from spectral_moments.command_line import main, make_parser, read_array
from spectral_moments.estimation import METHODS

PHI = Linear(3).sample(20, 25, random_state=1)


def run(*arguments):
    command = [sys.executable, "-m", "spectral_moments.command_line", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_estimate_of_every_format(tmp_path):
    np.save(tmp_path / "a.npy", PHI)
    np.savez(tmp_path / "b.npz", phi=PHI, other=-PHI)
    np.savetxt(tmp_path / "c.csv", PHI, delimiter=",", fmt="%.17g")
    np.savetxt(
        tmp_path / "d.tsv", PHI, delimiter="\t", fmt="%.17g", header="a\tb", comments=""
    )
    savemat(tmp_path / "e.mat", {"phi": PHI})
    savemat(tmp_path / "f.mat", {"phi": csc_array(PHI)})
    for name, key in (("a.npy", None), ("b.npz", "phi"), ("c.csv", None), ("e.mat", None)):
        np.testing.assert_array_equal(read_array(tmp_path / name, key), PHI)
    np.testing.assert_array_equal(read_array(tmp_path / "d.tsv"), PHI)
    np.testing.assert_array_equal(read_array(tmp_path / "f.mat"), PHI)
    result = run("estimate", tmp_path / "b.npz", "--key", "phi", "--n-max", 3, "--json")
    assert result.returncode == 0, result.stderr
    np.testing.assert_allclose(json.loads(result.stdout)["values"], all_cycles(PHI, 3))


def test_large_files_are_mapped(tmp_path):
    np.save(tmp_path / "a.npy", PHI)
    assert isinstance(read_array(tmp_path / "a.npy"), np.memmap)


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
    result = subprocess.run(
        [sys.executable, "-c", HIDDEN, *call],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        timeout=120,
    )
    os.close(theirs)
    try:
        said = os.read(ours, 1000)
    except OSError:  # nothing was written, and the other end is closed
        said = b""
    os.close(ours)
    assert (result.returncode, said) == (0, b"")
    assert "Spectral moments of 20 inputs x 25 features" in result.stdout


def test_reader_that_stops(tmp_path):
    call = ["simulate", "linear", tmp_path / "x.npy", "--rows", "5", "--columns", "5"]
    process = subprocess.Popen(
        [sys.executable, "-m", "spectral_moments.command_line", *call],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), said) == (1, b"")


FRAME = pd.DataFrame([[1.5, 2, 3], [4, np.nan, 6], [7, 8, 9], [1, 2, 4]])
NAMED = FRAME.set_axis(["a", "b", "c"], axis=1)


def read(tmp_path, text, **options):
    (tmp_path / "x.csv").write_text(text)
    return read_array(tmp_path / "x.csv", **options)


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
    np.testing.assert_array_equal(read_array(tmp_path / "x.tsv"), [[nan, nan], [1, 2]])
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
