"""Recordings: fetched as pip is told, resumed, checked; harmful files are refused."""

import hashlib
import http.server
import io
import json
import os
import pickle
import subprocess
import sys
import tarfile
import threading

import numpy as np
import pytest

from spectral_moments import recordings
from spectral_moments.recordings import (
    MAJAJ,
    FetchError,
    Package,
    Web,
    available,
    cache_folder,
    download,
    fetch,
    file_hash,
    find_link,
    index_pages,
    load,
    main,
    pip_settings,
    read_strings,
    unpack,
)

CONTENT = np.random.default_rng(0).bytes(300_000)  # cannot be compressed
HARM = "raise SystemExit('code of the package was run')\n"


def archive(path, *members, package=("toy-1.0/data", {})):
    "A source distribution; members are (name, content, type)."
    with tarfile.open(path, "w:gz") as tar:
        for name, content, kind in members:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.linkname = kind, len(content), "/etc/hostname"
            tar.addfile(member, io.BytesIO(content))
    whole, (folder, files) = path.read_bytes(), package
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    digest = hashlib.sha256(whole).hexdigest()
    return Package("toy", path.name, len(whole), digest, folder, sums)


@pytest.fixture
def toy(tmp_path):
    "A folder with an archive whose own code must not run, and its `Package`."
    files = {"a.npz": CONTENT, "b.npz": b"b"}
    members = [("toy-1.0/setup.py", HARM.encode(), tarfile.REGTYPE)]
    members += [(f"toy-1.0/data/{k}", v, tarfile.REGTYPE) for k, v in files.items()]
    members += [("/tmp/absolute", b"x", tarfile.REGTYPE), ("../up", b"x", tarfile.REGTYPE)]
    (tmp_path / "server").mkdir()
    path = tmp_path / "server" / "toy-1.0.tar.gz"
    return path, archive(path, *members, package=("toy-1.0/data", files))


class Server(http.server.BaseHTTPRequestHandler):
    "An index with one page and one file; breaks off as told."

    def do_GET(self):
        state = self.server.state
        state["asked"].append((self.path, dict(self.headers)))
        if self.path == "/simple/toy/":
            return self.answer(200, state["page"].encode())
        if not self.path.startswith("/files/"):
            return self.answer(404, b"")
        data, start = state["data"], self.headers.get("Range")
        if start and state["ranges"]:
            data, status = data[int(start[6:-1]) :], 206
        else:
            status = 200
        cut = state["cuts"].pop(0) if state["cuts"] else len(data)
        return self.answer(status, data[:cut], len(data))

    def answer(self, status, data, length=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def index(toy, monkeypatch):
    "A package index on this machine, and pip told to use it; yields what it does."
    path, package = toy
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    link = f'<a href="../../files/{path.name}#sha256={package.sha256}">toy</a>'
    server.state = dict(data=path.read_bytes(), page=link, ranges=True, cuts=[], asked=[])
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    clean(monkeypatch)
    place = f"http://127.0.0.1:{server.server_port}/simple"
    monkeypatch.setenv("PIP_INDEX_URL", place)
    server.state["place"] = place
    yield server.state
    server.shutdown()
    thread.join()
    server.server_close()


def clean(monkeypatch):
    "No pip settings but those of the test, and no proxy."
    for name in [*os.environ]:
        if name.startswith("PIP_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setattr(recordings, "pip_settings", from_environment)  # pip takes a second


def from_environment():
    "What pip says if it has no files."
    names = {k: k[4:].lower().replace("_", "-") for k in os.environ if k[:4] == "PIP_"}
    return {name: os.environ[k] for k, name in names.items()}


def from_index(toy, tmp_path, **options):
    return fetch(tmp_path / "cache", package=toy[1], progress=False, **options)


def files(index):
    "What was asked of the file."
    return [asked for asked in index["asked"] if asked[0].startswith("/files/")]


def test_fetch_and_leave_alone(index, toy, tmp_path):
    folder = from_index(toy, tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["a.npz", "b.npz"]
    assert (folder / "a.npz").read_bytes() == CONTENT
    asked = len(index["asked"])
    assert from_index(toy, tmp_path) == folder and len(index["asked"]) == asked
    (folder / "b.npz").unlink()
    assert not available(folder, toy[1])
    assert available(from_index(toy, tmp_path), toy[1])


@pytest.mark.parametrize("form", ["json", "absolute", "single quotes"])
def test_forms_of_an_index(index, toy, tmp_path, form):
    path, package = toy
    url = index["place"].replace("/simple", f"/files/{path.name}")
    if form == "json":
        page = {"files": [{"url": url, "hashes": {"sha256": package.sha256}}]}
        index["page"] = json.dumps(page)
    elif form == "absolute":
        index["page"] = f'<A data-x="1"\n HREF="{url}?a=1&amp;b=2">x</A>'
    else:
        index["page"] = f"<a href='{url}'>x</a>"
    assert available(from_index(toy, tmp_path), package)


@pytest.mark.parametrize("ranges", [True, False])
def test_broken_connection_is_resumed(index, toy, tmp_path, ranges):
    index["ranges"], index["cuts"] = ranges, [200_000, 50_000]
    assert available(from_index(toy, tmp_path), toy[1])
    asked = [headers.get("Range") for _, headers in files(index)]
    assert asked[0] is None and asked[1] == "bytes=200000-"
    assert asked[2] == ("bytes=250000-" if ranges else "bytes=50000-")


def test_interrupted_run_goes_on(index, toy, tmp_path):
    index["cuts"] = [100_000] + [0] * 9
    with pytest.raises(FetchError, match="try again: it goes on where it stopped"):
        from_index(toy, tmp_path)
    part = tmp_path / "cache" / f"{toy[1].file}.part"
    assert part.stat().st_size == 100_000 and not available(part.parent, toy[1])
    index["cuts"].clear()
    assert available(from_index(toy, tmp_path), toy[1])
    assert files(index)[-1][1]["Range"] == "bytes=100000-"
    assert not part.exists()


@pytest.mark.parametrize("change", ["byte", "longer", "shorter"])
def test_other_bytes_are_thrown_away(index, toy, tmp_path, change):
    data = index["data"]
    index["data"] = {
        "byte": data[:-9] + b"x" + data[-8:],
        "longer": data + b"x",
        "shorter": data[:-1],
    }[change]
    with pytest.raises(FetchError, match="another hash|broke"):
        from_index(toy, tmp_path)
    assert not available(tmp_path / "cache", toy[1])
    assert not (tmp_path / "cache" / toy[1].file).exists()


def test_link_with_another_hash_is_not_followed(index, toy, tmp_path):
    index["page"] = index["page"].replace(toy[1].sha256, "0" * 64)
    with pytest.raises(FetchError, match="127.0.0.1: has no toy-1.0.tar.gz"):
        from_index(toy, tmp_path)
    assert not files(index)


def test_second_index_is_asked(index, toy, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", index["place"] + "/nothing")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", index["place"])
    assert available(from_index(toy, tmp_path), toy[1])


def test_secret_is_sent_and_not_shown(index, toy, tmp_path, monkeypatch):
    secret = index["place"].replace("//", "//me:s%40cret@")
    monkeypatch.setenv("PIP_INDEX_URL", secret + "/nothing")
    with pytest.raises(FetchError) as caught:
        from_index(toy, tmp_path)
    assert "cret" not in str(caught.value) and "Not Found" in str(caught.value)
    assert index["asked"][-1][1]["Authorization"] == "Basic bWU6c0BjcmV0"


def test_offline(toy, tmp_path, monkeypatch, capsys):
    clean(monkeypatch)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nobody listens
    with pytest.raises(FetchError, match=r"127\.0\.0\.1: .*pass it with --archive"):
        from_index(toy, tmp_path)
    monkeypatch.setenv("SPECTRAL_MOMENTS_CACHE", str(tmp_path / "empty"))
    assert main(["fetch"]) == 1 and "error: could not fetch" in capsys.readouterr().err
    assert main(["fetch", "--optional"]) == 0
    told = capsys.readouterr()
    assert told.err.startswith("note: ") and "Traceback" not in told.err
    with pytest.raises(FileNotFoundError, match="recordings fetch"):
        load("IT")


def test_folder_of_links_and_own_file(toy, tmp_path, monkeypatch):
    path, package = toy
    clean(monkeypatch)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    assert available(from_index(toy, tmp_path), package)
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(FetchError, match="no index to ask"):
        fetch(tmp_path / "other", package=package, progress=False)
    assert available(fetch(tmp_path / "other", archive=path, package=package), package)
    (tmp_path / "wrong").write_bytes(b"x")
    with pytest.raises(FetchError, match="another hash"):
        fetch(tmp_path / "third", archive=tmp_path / "wrong", package=package)
    with pytest.raises(OSError):
        fetch(tmp_path / "third", archive=tmp_path / "missing", package=package)


def test_settings_of_pip(tmp_path, monkeypatch):
    clean(monkeypatch)
    text = "[global]\nindex-url = https://a.example/simple\ntimeout = 3\n"
    text += "extra-index-url =\n  https://b.example/s\n  https://c.example/s\n"
    (tmp_path / "pip.conf").write_text(text + "[download]\ntimeout = 4\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    found = pip_settings()
    assert found["timeout"] == "4" and Web(found).timeout == 4
    pages = [
        f"https://{x}/toy/" for x in ("a.example/simple", "b.example/s", "c.example/s")
    ]
    assert index_pages(found, "toy") == pages
    monkeypatch.setenv("PIP_INDEX_URL", "https://d.example/simple")
    assert index_pages(pip_settings(), "toy")[0] == "https://d.example/simple/toy/"
    broken = subprocess.CompletedProcess([], 1, "", "no pip")
    monkeypatch.setattr(recordings.subprocess, "run", lambda *_, **__: broken)
    assert pip_settings()["index-url"] == "https://d.example/simple"


def test_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECTRAL_MOMENTS_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("SPECTRAL_MOMENTS_CACHE")
    for platform, name in (("linux", "XDG_CACHE_HOME"), ("win32", "LOCALAPPDATA")):
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setenv(name, str(tmp_path / "x"))
        assert cache_folder() == tmp_path / "x" / "spectral_moments"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder().parts[-2:] == ("Caches", "spectral_moments")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_archive_with_something_else_in_the_place(tmp_path, kind):
    path = tmp_path / "toy.tar.gz"
    package = archive(path, ("d/a.npz", b"", kind), package=("d", {"a.npz": b""}))
    with pytest.raises(FetchError, match="not a plain file"):
        unpack(path, tmp_path, package)
    assert os.listdir(tmp_path) == ["toy.tar.gz"]


def test_archive_without_a_member_or_with_another(tmp_path):
    path = tmp_path / "toy.tar.gz"
    package = archive(path, ("d/b", b"b", b"0"), package=("d", {"a": b"a"}))
    with pytest.raises(FetchError, match="has no a"):
        unpack(path, tmp_path, package)
    package = archive(path, ("d/a", b"b", b"0"), package=("d", {"a": b"a"}))
    with pytest.raises(FetchError, match="another hash"):
        unpack(path, tmp_path, package)
    assert os.listdir(tmp_path) == ["toy.tar.gz"]


def test_nothing_of_the_package_runs(index, toy, tmp_path):
    "In a process of its own, with every way to run or import code watched."
    watch = """
import sys, pathlib
from spectral_moments import recordings
def hook(event, args):
    if event == "subprocess.Popen":
        assert args[1][1:] == ["-m", "pip", "config", "list"], args
    assert event not in ("os.system", "os.exec", "os.posix_spawn", "pickle.find_class")
    if event == "import" and args[1]:
        assert "toy-1.0" not in str(args[1]), args
sys.addaudithook(hook)
package = recordings.Package(*eval(sys.argv[2]))
print(recordings.fetch(pathlib.Path(sys.argv[1]), package=package, progress=False))
"""
    command = [sys.executable, "-c", watch, str(tmp_path / "cache"), repr(tuple(toy[1]))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert available(tmp_path / "cache", toy[1])


# --- files that mean harm -----------------------------------------------------------------


def npy(pickled, shape=(2,)):
    "A .npy file of objects with this pickle."
    file = io.BytesIO()
    header = {"descr": "|O", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    file.write(pickled)
    file.seek(0)
    return file


class Call:
    def __init__(self, function, *arguments):
        self.told = function, arguments

    def __reduce__(self):
        return self.told


def strings(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@pytest.mark.parametrize("protocol", [3, 4, 5])  # numpy writes 3 or 4
def test_strings_of_every_protocol(protocol):
    array = strings("a", "ä b", "a").reshape(3, 1)
    found = read_strings(npy(pickle.dumps(array, protocol), array.shape))
    assert found.shape == array.shape and found.ravel().tolist() == ["a", "ä b", "a"]


@pytest.mark.parametrize(
    "value",
    [
        Call(os.system, "echo harm"),
        Call(eval, "1"),
        Call(getattr, "a", "upper"),
        Call(subprocess.Popen, ["true"]),
        Call(np.fromfile, "/etc/hostname"),
        Call(np.load, "x"),
        3,
        b"a",
        ["a"],
        None,
        np.str_("a"),
        strings("a"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_refused(value):
    for pickled in (strings("a", value), value):
        with pytest.raises(ValueError, match="asks for|not an array of strings"):
            read_strings(npy(pickle.dumps(pickled)))


@pytest.mark.parametrize(
    "pickled",
    [
        b"",
        b"\x80\x05.",
        b"cos\nsystem\n(S'echo harm'\ntR.",
        b"cnumpy\nndarray\n(I3\ntR.",  # an array with no state
        b"cnumpy\nndarray\n.",
        b"cnumpy\nndarray.__reduce__\n(tR.",
        b"\x80\x04\x8c\x05numpy\x8c\x08f2py.sys\x93.",
        b"P1\n.",
        b"\x80\x02\x82\x01.",
        b"(lp0\nVa\naVb\na.",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x00.",  # a string of 2^56 bytes
        pickle.dumps(strings("a", "b", "c")),  # more than the header says
        pickle.dumps(strings("a", "b"))[:-9],
    ],
)
def test_crafted_pickles(pickled):
    with pytest.raises(ValueError):
        read_strings(npy(pickled))


def test_not_an_object_array():
    file = io.BytesIO()
    np.save(file, np.arange(2))
    file.seek(0)
    with pytest.raises(ValueError, match="not of objects"):
        read_strings(file)
    with pytest.raises(ValueError):
        read_strings(io.BytesIO(b"PK"))


# --- the recordings -----------------------------------------------------------------------


def test_names_are_checked():
    for arguments in (("V1",), ("IT", "Bo")):
        with pytest.raises(ValueError, match="must be"):
            load(*arguments)


def test_load_from_files_of_the_same_form(tmp_path):
    rng = np.random.default_rng(1)
    for name in MAJAJ.members:
        data = dict(
            stims=np.tile(np.arange(4), (3, 1)), Xs=rng.random((3, 4, 2), np.float32)
        )
        objects = np.tile(strings("a", "b", "b", "c"), (3, 1))
        np.savez(tmp_path / name, objs=objects, **data)
    found = load("IT", folder=tmp_path)
    assert found.trials.shape == (3, 4, 4) and found.objects.tolist() == list("abbc")
    assert found.animals.tolist() == ["Chabo"] * 2 + ["Tito"] * 2
    one = load("IT", "Tito", folder=tmp_path)
    assert (one.trials == found.trials[:, :, 2:]).all()
    data["stims"][1, 0] = 9
    np.savez(tmp_path / "IT_Tito.npz", objs=objects, **data)
    with pytest.raises(ValueError, match="different images"):
        load("IT", folder=tmp_path)


@pytest.mark.skipif(not available(), reason="the recordings have not been fetched")
def test_the_recordings():
    for name, digest in MAJAJ.members.items():
        assert file_hash(cache_folder() / name) == digest
    it, v4 = load("IT"), load("V4")
    assert it.trials.shape == (28, 2562, 168) and v4.trials.shape == (28, 2562, 88)
    assert it.trials.dtype == np.float32 and np.isfinite(it.trials).all()
    assert len(set(it.objects.tolist())) == 64 and (it.objects == v4.objects).all()
    assert (it.animals == "Chabo").sum() == 58 and (v4.animals == "Chabo").sum() == 70


def test_nothing_is_downloaded_twice_or_half(index, toy, tmp_path):
    web, target = Web({}), tmp_path / "x"
    link = find_link(index["page"], index["place"] + "/toy/", toy[1])
    download(web, link, target, toy[1], progress=False)
    assert file_hash(target) == toy[1].sha256 and not (tmp_path / "x.part").exists()


def test_progress(index, toy, tmp_path, capsys):
    fetch(tmp_path / "cache", package=toy[1])
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 12 and lines[-1].strip() == "0.3 of 0.3 MB"
