"""Every line of the page of recipes runs."""

import re
import shlex

import numpy as np
import pytest
from conftest import ROOT, normal

import spectral_moments as sm
from spectral_moments.io.command_line import main

PAGE = (ROOT / "nbs/recipes.md").read_text("utf-8")
BLOCKS = re.findall(r"```(python|sh)\n(.*?)```", PAGE, re.DOTALL)


def python_data():
    "What the blocks in Python begin with."
    torch = pytest.importorskip("torch")
    process, rng = sm.Linear(5), np.random.default_rng(1)
    latent = rng.standard_normal((120, 5))
    phi, x, y = (latent @ rng.standard_normal((5, Q)) for Q in (40, 50, 60))
    network = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU())
    massive = process.sample(80, 30, rng)
    massive[:, 3] *= 30
    return dict(
        sm=sm,
        np=np,
        Callback=object,
        phi=phi,
        x=x + 0.1 * normal((120, 50)),
        y=y + 0.1 * normal((120, 60)),
        maps=rng.standard_normal((30, 12, 3, 3)),
        tokens=process.sample(120, 40, rng),
        documents=np.repeat(np.arange(30), 4),
        weights=np.full(120, 1 / 120),
        network=network,
        batches=torch.randn(200, 8).split(50),
        massive=massive,
    )


@pytest.mark.filterwarnings("ignore::spectral_moments.results.EstimateWarning")
def test_python(capsys):
    known = python_data()
    blocks = [text for kind, text in BLOCKS if kind == "python"]
    for text in blocks:
        exec(compile(text, text.split("\n")[0], "exec"), known)
    assert len(blocks) > 12 and "Dimension" in capsys.readouterr().out
    logged, network = {}, known["network"]
    network.log = lambda name, value: logged.update({name: value})
    callback = known["LogDimension"]()
    callback.on_validation_epoch_start(None, network)
    for batch in known["batches"]:
        network(batch)
    callback.on_validation_epoch_end(None, network)
    assert 1 < logged["dimension/1"] < 16


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    phi = sm.Linear(20, scale=0.05).sample(100, 200, random_state=1)
    np.save("phi.npy", phi)
    np.save("layer.npy", phi[:, ::-2] + 0.1 * normal((100, 100)))
    np.save("trials.npy", phi + normal((2, 100, 200)))
    np.save("shard-1.npy", phi[:50])
    np.save("shard-2.npy", phi[50:])
    np.savetxt("recording.csv", phi, delimiter=",")
    np.savetxt("movies.txt", np.repeat(np.arange(25), 4), fmt="%d")
    with pytest.importorskip("h5py").File("recording.h5", "w") as file:
        file["session1/rates"] = phi
    commands = [line for kind, text in BLOCKS if kind == "sh" for line in text.split("\n")]
    for command in filter(None, commands):
        words = shlex.split(command)
        assert words[0] == "spectral-moments"
        assert not main(words[1:]), (command, capsys.readouterr().err)
    assert (tmp_path / "report.html").exists()
