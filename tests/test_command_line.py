"""The command line, through real processes."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.io import savemat

from spectral_moments import Linear, all_cycles
from spectral_moments.command_line import read_array

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
    for name, key in (("a.npy", None), ("b.npz", "phi"), ("c.csv", None), ("e.mat", None)):
        np.testing.assert_array_equal(read_array(tmp_path / name, key), PHI)
    np.testing.assert_array_equal(read_array(tmp_path / "d.tsv"), PHI)
    result = run("estimate", tmp_path / "b.npz", "--key", "phi", "--n-max", 3, "--json")
    assert result.returncode == 0, result.stderr
    np.testing.assert_allclose(json.loads(result.stdout)["values"], all_cycles(PHI, 3))


def test_large_files_are_mapped(tmp_path):
    np.save(tmp_path / "a.npy", PHI)
    assert isinstance(read_array(tmp_path / "a.npy"), np.memmap)


def test_trials_and_plot(tmp_path):
    np.save(tmp_path / "a.npy", PHI)
    np.save(tmp_path / "b.npy", PHI)
    np.save(tmp_path / "both.npy", np.stack([PHI, PHI]))
    plot = tmp_path / "out.png"
    several = run(
        "estimate", tmp_path / "a.npy", tmp_path / "b.npy", "--n-max", 2, "--json"
    )
    one = run(
        "estimate",
        tmp_path / "both.npy",
        "--trials",
        "--n-max",
        2,
        "--json",
        "--plot",
        plot,
    )
    assert json.loads(several.stdout)["values"] == json.loads(one.stdout)["values"]
    assert json.loads(one.stdout)["shape"] == [2, 20, 25]
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_simulate(tmp_path):
    result = run(
        "simulate", "rbf", tmp_path / "x.npy", "--rows", 7, "--columns", 9, "--seed", 3
    )
    assert result.returncode == 0
    assert result.stdout.startswith("m(1) = 1\n")
    assert np.load(tmp_path / "x.npy").shape == (7, 9)


@pytest.fixture
def bad(tmp_path):
    np.save(tmp_path / "trials.npy", np.stack([PHI, PHI]))
    np.save(tmp_path / "small.npy", PHI[:4])
    np.save(tmp_path / "phi.npy", PHI)
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "phi.npy").read_bytes()[:500])
    (tmp_path / "broken.npz").write_bytes(b"not a zip")
    (tmp_path / "broken.mat").write_bytes(b"not a mat")
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
        (["words.csv"], "'x' in row 2"),
        (["two.npz"], "pass --key with one of a, b"),
        (["two.npz", "--key", "c"], "has no array 'c'"),
        (["trials.npy"], "pass --trials"),
        (["phi.npy", "small.npy"], "different shapes"),
        (["small.npy", "--n-max", "6"], "n_max = 6 exceeds"),
        (["phi.npy", "--method", "best"], "method = 'best'"),
    ],
)
def test_errors(bad, arguments, message, capsys):
    from spectral_moments.command_line import main

    files = [str(bad / a) if "." in a else a for a in arguments]
    assert main(["estimate", *files]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_exit_codes(bad):
    result = run("estimate", bad / "nothing.npy")
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    assert run().returncode == 2
    assert run("--help").returncode == 0
