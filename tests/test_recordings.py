"""Recordings: taken from the archive by hash, checked whenever they are read."""

import io
import tarfile

import numpy as np
import pooch
import pytest
from recordings import CACHE, FOLDER, available, fetch, load


@pytest.fixture
def files():
    "The four files, small."
    rng, made = np.random.default_rng(1), {}
    objects = np.tile(np.array(["a", "b", "b", "c"], dtype=object), (3, 1))
    for name in CACHE.registry:
        data, stimuli = io.BytesIO(), np.tile(np.arange(4), (3, 1))
        np.savez(data, stims=stimuli, Xs=rng.random((3, 4, 2), np.float32), objs=objects)
        made[name] = data.getvalue()
    return made


@pytest.fixture
def cache(tmp_path, files):
    "An empty cache that knows their hashes."
    (tmp_path / "given").mkdir()
    for name, content in files.items():
        (tmp_path / "given" / name).write_bytes(content)
    known = {name: pooch.file_hash(tmp_path / "given" / name) for name in files}
    return pooch.create(path=tmp_path / "cache", base_url="", registry=known)


def archive(path, files, kind=tarfile.REGTYPE):
    "A source distribution with these members, and another that nobody asked for."
    with tarfile.open(path, "w:gz") as tar:
        for name, content in {**files, "../../../up": b"x"}.items():
            member = tarfile.TarInfo(f"{FOLDER}/{name}")
            member.type, member.size, member.linkname = kind, len(content), "/etc/hostname"
            tar.addfile(member, io.BytesIO(content))
    return path


def test_fetched_once_and_loaded(cache, files, tmp_path):
    whole = archive(tmp_path / "x.tar.gz", files)
    assert not available(cache) and fetch(whole, cache) == cache.abspath
    assert sorted(path.name for path in cache.abspath.iterdir()) == sorted(files)
    assert fetch(None, cache) == cache.abspath  # nothing left to fetch
    found = load("IT", cache=cache)
    assert found.trials.shape == (3, 4, 4) and found.objects.tolist() == list("abbc")
    assert found.animals.tolist() == ["Chabo"] * 2 + ["Tito"] * 2


def test_hash_is_compared_at_every_load(cache, files, tmp_path, monkeypatch):
    fetch(archive(tmp_path / "x.tar.gz", files), cache)
    path = cache.abspath / "V4_Tito.npz"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("read before the check"))
    with pytest.raises(OSError, match="another hash"):
        load("V4", "Tito", cache=cache)


@pytest.mark.parametrize("harm", ["bytes", "link", "missing"])
def test_other_archives_are_refused(cache, files, tmp_path, harm):
    path = tmp_path / "x.tar.gz"
    if harm == "bytes":
        archive(path, files | {"IT_Tito.npz": b"other"})
    elif harm == "link":
        archive(path, dict.fromkeys(files, b""), tarfile.SYMTYPE)
    else:
        archive(path, {})
    with pytest.raises((OSError, KeyError)):
        fetch(path, cache)
    assert not (cache.abspath / "IT_Tito.npz").exists() and not available(cache)
