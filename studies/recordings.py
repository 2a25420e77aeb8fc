"""Macaque IT and V4 (Majaj et al. 2015), fetched once into the user's cache.

    python studies/recordings.py [--optional]

The source distribution of `dimensionality` 0.1.0 carries the recordings. pip fetches it, by
its hash, into a folder that is thrown away (to name its version, pip runs the build script
of these known bytes); four files are kept, and the hash of each is compared whenever it is
read. No terms are stated for the recordings: cite their authors,
and ask them before you pass the data on.
"""

import argparse
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

with warnings.catch_warnings():  # a progress bar without widgets is fine
    warnings.simplefilter("ignore")
    import pooch

ARCHIVE = "dimensionality-0.1.0.tar.gz"
SHA256 = "f66cb0ec1fd142a0799627ee634309b820f66fa4adfc75e7b9a56ba28170b147"
FOLDER = "dimensionality-0.1.0/legacy/biology/BrainScore"
ANIMALS = ("Chabo", "Tito")
CACHE = pooch.create(
    path=pooch.os_cache("spectral_moments"),
    base_url="",
    env="SPECTRAL_MOMENTS_CACHE",
    registry={
        "IT_Chabo.npz": "017a4658e6bf2db4b61299fc8682c78f3ea1725c41d5f65fa592c5aaf720d32c",
        "IT_Tito.npz": "cdaf172885a4ecb259146f7bdfafe2b26058431dd237f74e086341ebaffdd626",
        "V4_Chabo.npz": "53aa041ffecd710f5b33efc85d7fc4c7395b9b841c39fb37e194a7365422cadb",
        "V4_Tito.npz": "9e9c6bd7f256f841f9eebebce6951fc05774d33705943c8ff79d058f1b99e72e",
    },
)


def available(cache=CACHE):
    "Whether all files are there."
    return all((cache.abspath / name).is_file() for name in cache.registry)


def download(folder):
    "The archive, fetched by pip from wherever pip fetches; an error if its hash is wrong."
    wanted = Path(folder) / "wanted.txt"
    wanted.write_text(f"dimensionality==0.1.0 --hash=sha256:{SHA256}\n")
    command = [sys.executable, "-I", "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary=:all:", "--require-hashes", "-r", wanted.name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip() or "pip failed").splitlines()[-1]
        raise OSError(
            f"could not fetch {ARCHIVE} ({reason}). Try again with a network; or get the "
            "file by other means and pass it with --archive"
        )
    return Path(folder) / ARCHIVE


def fetch(archive=None, cache=CACHE):
    "Fetch what is not there, or take it from the archive; the folder of the files."
    if archive is None and available(cache):
        return cache.abspath
    cache.abspath.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=cache.abspath) as folder,
        tarfile.open(archive or download(folder)) as tar,
    ):
        for name, digest in cache.registry.items():
            member = tar.extractfile(f"{FOLDER}/{name}")
            path = Path(folder) / name
            path.write_bytes(member.read() if member else b"")
            if pooch.file_hash(path) != digest:
                raise OSError(f"{name} in the archive has another hash than expected")
            path.replace(cache.abspath / name)
    return cache.abspath


class Recording(NamedTuple):
    "Responses of one area to repeated images."

    trials: np.ndarray  # (repeats, images, sites), normalised for each site and repeat
    objects: np.ndarray  # (images,) name of the object in each image
    animals: np.ndarray  # (sites,) name of the animal of each site


def load(area, animal=None, cache=CACHE):
    "The recording of one area, IT or V4; of both animals, or of Chabo or Tito."
    names = ANIMALS if animal is None else (animal,)
    parts = [load_file(f"{area}_{name}.npz", cache) for name in names]
    sites = np.repeat(names, [trials.shape[2] for trials, _ in parts])
    return Recording(np.concatenate([x for x, _ in parts], axis=2), parts[0][1], sites)


def halves(trials, parts=2):
    "Means of the odd and of the even repeats, or of more parts: (parts, images, sites)."
    return np.stack([trials[k::parts].mean(axis=0, dtype=float) for k in range(parts)])


def load_file(name, cache):
    "Trials and objects of one file, after its hash was compared."
    path = cache.abspath / name
    if not path.is_file():
        raise FileNotFoundError(f"{name} is not here; run python studies/recordings.py")
    content = path.read_bytes()  # once, so that what was compared is what is read
    if hashlib.sha256(content).hexdigest() != cache.registry[name]:
        raise OSError(f"{path} has another hash than expected; delete it and fetch again")
    with np.load(io.BytesIO(content), allow_pickle=True) as file:  # these bytes are known
        assert (file["stims"] == file["stims"][0]).all()  # the same images in every repeat
        return file["Xs"], file["objs"][0].astype(str)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--archive", type=Path, help=f"{ARCHIVE}, if you have it")
    parser.add_argument("--optional", action="store_true", help="a failure is a note only")
    given = parser.parse_args(arguments)
    try:
        print(f"Recordings are in {fetch(given.archive)}")
    except (OSError, KeyError, tarfile.TarError) as error:
        print(f"{'note' if given.optional else 'error'}: {error}", file=sys.stderr)
        return 0 if given.optional else 1


if __name__ == "__main__":
    sys.exit(main())
