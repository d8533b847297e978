"""One suite that every storage passes: disk, memory, S3, HDFS, emulators of Azure and Google."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest

from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import (
    CannotRead,
    FileGone,
    FloodmarkError,
    NotACheckpoint,
    UnsafePath,
    WrongUse,
)
from floodmark.storage.file_copy import copy_file
from floodmark.storage.files import Files, Folder, local_path, open_files
from floodmark.storage.local import LocalFiles
from floodmark.storage.overlay import Overlay
from floodmark.storage.remote import RemoteFiles
from ports import nobody_listens, silent_listener

STORAGES = [
    "local",
    "memory",
    pytest.param("s3", marks=pytest.mark.services),
    pytest.param("hdfs", marks=pytest.mark.services),
    pytest.param("azurite", marks=(pytest.mark.services, pytest.mark.soak)),
    pytest.param("gcs", marks=(pytest.mark.services, pytest.mark.soak)),
]
_NUMBERS = itertools.count()


@pytest.fixture(params=STORAGES)
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    """An empty place."""
    if request.param == "local":
        (tmp_path / "place").mkdir()
        yield open_files(str(tmp_path / "place"))
    elif request.param == "memory":
        yield open_files(f"memory://files-{next(_NUMBERS)}/place")
    elif request.param == "hdfs":
        hdfs = request.getfixturevalue("hdfs")
        yield open_files(hdfs.web(hdfs.place("files")))
    else:
        server = request.getfixturevalue(request.param)
        yield open_files(server.place("files"), server.storage_options)


def _paths(files: Files, folder: str = "") -> list[str]:
    return sorted(file.path for file in files.list(folder).files)


def test_what_is_written_is_read_and_listed(files: Files) -> None:
    files.write("offsets/0", b"zero")
    files.write("state/0/1/left/2.delta", b"\0\xff" * 50_000)
    files.write("metadata", b"")
    assert files.read("offsets/0") == b"zero"
    assert files.read("state/0/1/left/2.delta") == b"\0\xff" * 50_000
    assert files.read("metadata") == b""
    listing = files.list()
    assert listing.complete
    assert {file.path: file.size for file in listing.files} == {
        "offsets/0": 4,
        "state/0/1/left/2.delta": 100_000,
        "metadata": 0,
    }


def test_times_are_near_now(files: Files) -> None:
    import time

    files.write("metadata", b"x")
    (file,) = files.list().files
    assert file.mtime_ms is not None
    assert abs(file.mtime_ms - time.time() * 1000) < 600_000


def test_a_folders_listing_keeps_paths_from_the_root(files: Files) -> None:
    for path in ("offsets/0", "offsets/10", "offsets-old/1", "state/0/0/1.delta"):
        files.write(path, b"x")
    assert _paths(files, "offsets") == ["offsets/0", "offsets/10"]
    assert _paths(files, "state/0") == ["state/0/0/1.delta"]
    assert _paths(files, "nothing") == []


def test_one_level(files: Files) -> None:
    for path in ("metadata", "offsets/0", "state/0/0/1.delta", ".hidden", "offsets/.0.crc"):
        files.write(path, b"x")
    assert files.level() == Folder(("offsets", "state"), (".hidden", "metadata"))
    assert files.level("offsets") == Folder((), (".0.crc", "0"))
    assert files.level("state") == Folder(("0",), ())


def test_an_absent_folders_level_is_empty(files: Files) -> None:
    files.write("metadata", b"x")
    assert files.level("offsets") == Folder((), ())
    assert files.level("a/b/c") == Folder((), ())


def test_a_level_is_never_remembered(files: Files) -> None:
    files.write("offsets/0", b"x")
    assert files.level("offsets").files == ("0",)
    files.write("offsets/1", b"x")
    files.delete(["offsets/0"])
    assert files.level("offsets").files == ("1",)
    assert _paths(files) == ["offsets/1"]


def test_an_absent_file_is_gone(files: Files) -> None:
    files.write("metadata", b"x")
    with pytest.raises(FileGone, match="offsets/7 is not there"):
        files.read("offsets/7")


def test_many_at_once_with_missing_ones_in_their_place(files: Files) -> None:
    for batch in range(40):
        files.write(f"offsets/{batch}", str(batch).encode())
    wanted = [f"offsets/{batch}" for batch in range(42)]
    found = files.read_many(wanted)
    assert list(found) == wanted
    assert [found[f"offsets/{batch}"] for batch in range(40)] == [
        str(batch).encode() for batch in range(40)
    ]
    assert isinstance(found["offsets/40"], FileGone)
    assert isinstance(found["offsets/41"], FileGone)
    assert files.read_many([]) == {}


def test_write_replaces_and_leaves_nothing_beside(files: Files) -> None:
    files.write("offsets/0", b"a longer text than the second")
    files.write("offsets/0", b"second")
    assert files.read("offsets/0") == b"second"
    assert _paths(files) == ["offsets/0"]


def test_create_refuses_to_overwrite(files: Files) -> None:
    assert files.create("commits/0", b"first") is True
    assert files.create("commits/0", b"second") is False
    assert files.read("commits/0") == b"first"
    assert _paths(files) == ["commits/0"]


def test_of_many_that_create_a_file_one_does(files: Files) -> None:
    for turn in range(5):
        path = f"_floodmark/epochs/{turn}.json"
        with ThreadPoolExecutor(6) as pool:
            made = list(pool.map(lambda n, path=path: files.create(path, b"%d" % n), range(6)))  # type: ignore[misc]
        assert made.count(True) == 1
        assert files.read(path) == b"%d" % made.index(True)


def test_a_copy_replaces_what_is_there_and_leaves_nothing_beside(files: Files) -> None:
    files.write("state/0/1.delta", b"new")
    for _ in range(2):
        copy_file(files, "state/0/1.delta", files, "kept/state/0/1.delta")
        assert files.read("kept/state/0/1.delta") == b"new"
    files.write("kept/state/0/1.delta", b"a longer and older text")
    copy_file(files, "state/0/1.delta", files, "kept/state/0/1.delta")
    assert files.read("kept/state/0/1.delta") == b"new"
    assert _paths(files) == ["kept/state/0/1.delta", "state/0/1.delta"]


def test_delete_is_idempotent(files: Files) -> None:
    for path in ("offsets/0", "offsets/1", "offsets/2"):
        files.write(path, b"x")
    files.delete(["offsets/0", "offsets/never", "offsets/1"])
    files.delete(["offsets/0"])
    files.delete([])
    assert _paths(files) == ["offsets/2"]


def test_below(files: Files) -> None:
    files.write("a/b/metadata", b"inner")
    files.write("metadata", b"outer")
    inner = files.below("a/b")
    assert inner.root == f"{files.root}/a/b"
    assert inner.read("metadata") == b"inner"
    assert _paths(inner) == ["metadata"]
    inner.write("offsets/0", b"x")
    assert files.read("a/b/offsets/0") == b"x"
    assert inner.reads_cost == files.reads_cost


def test_names_that_need_care(files: Files) -> None:
    names = ["a b", "ä", "50%25", "plus+sign", "hash#tag", "x=1&y=2", "quote'"]
    for name in names:
        files.write(f"data {name}/{name}", name.encode())
    assert {path.split("/")[1] for path in _paths(files)} == set(names)
    for name in names:
        assert files.read(f"data {name}/{name}") == name.encode()
        assert files.level(f"data {name}").files == (name,)


def test_a_missing_place(files: Files) -> None:
    missing = files.below("nowhere/at/all")
    files.write("metadata", b"x")
    with pytest.raises(CannotRead, match="no such file or folder") as caught:
        missing.list()
    assert "nowhere/at/all" in caught.value.what
    assert missing.level() == Folder((), ())


def test_a_file_is_no_place(files: Files) -> None:
    files.write("data.csv", b"a,b")
    with pytest.raises(NotACheckpoint, match=r"data\.csv is a file, not a checkpoint folder"):
        files.below("data.csv").list()


def test_an_empty_folder_is_not_a_missing_one(tmp_path: Path) -> None:
    import fsspec

    (tmp_path / "empty").mkdir()
    assert open_files(str(tmp_path / "empty")).list().files == ()
    fsspec.filesystem("memory").makedirs("/empty-folder", exist_ok=True)
    assert open_files("memory://empty-folder").list().files == ()


@pytest.mark.services
def test_a_bucket_that_is_not_there(s3: object) -> None:
    files = open_files("s3://no-such-bucket/ck", s3.storage_options)  # type: ignore[attr-defined]
    with pytest.raises(CannotRead, match="s3://no-such-bucket/ck"):
        files.list()


@pytest.mark.services
def test_hadoops_names_for_s3(s3: object) -> None:
    place = s3.place("hadoop")  # type: ignore[attr-defined]
    options = s3.storage_options  # type: ignore[attr-defined]
    open_files(place, options).write("metadata", b"x")
    files = open_files(place.replace("s3://", "s3a://"), options)
    assert files.read("metadata") == b"x"
    assert files.root.startswith("s3a://")


@pytest.mark.services
def test_a_listing_stopped_early_says_so(s3: object) -> None:
    files = open_files(s3.place("many"), s3.storage_options)  # type: ignore[attr-defined]
    for number in range(5):
        files.write(f"a/{number}", b"x")
    stopped = files.list(most=3)
    assert stopped.complete is False
    assert [file.path for file in stopped.files][:3] == ["a/0", "a/1", "a/2"]
    assert files.list(most=50).complete is True


@pytest.mark.services
def test_a_server_that_does_not_answer() -> None:
    with nobody_listens() as port:
        options = {
            "key": "k",
            "secret": "s",
            "endpoint_url": f"http://127.0.0.1:{port}",
            "config_kwargs": {"retries": {"max_attempts": 1}},
        }
        with pytest.raises(CannotRead, match="storage answered with an error"):
            open_files("s3://bucket/ck", options).list()


@pytest.mark.services
def test_a_store_that_takes_connections_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A NameNode was waited for without an end."""
    monkeypatch.setattr("floodmark.storage.webhdfs.SILENT_SECONDS", 0.5)
    with silent_listener() as port:
        s3 = {
            "key": "k",
            "secret": "s",
            "endpoint_url": f"http://127.0.0.1:{port}",
            "config_kwargs": {"read_timeout": 0.5, "retries": {"total_max_attempts": 1}},
        }
        for place, options in (("s3://bucket/ck", s3), (f"webhdfs://127.0.0.1:{port}/ck", {})):
            with pytest.raises(CannotRead, match="the storage does not answer") as caught:
                open_files(place, options).list()
            assert "repeat the command" in caught.value.do


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("data/ck", "data/ck"),
        ("/data/ck/", "/data/ck/"),
        ("file:/data/ck", "/data/ck"),
        ("file:///data/ck", "/data/ck"),
        ("file:///data/a%20b", "/data/a b"),
        ("C:/data", "C:/data"),
        ("s3://bucket/ck", None),
        ("memory://ck", None),
        ("abfss://c@a.dfs.core.windows.net/ck", None),
    ],
)
def test_which_places_are_on_this_disk(location: str, path: str | None) -> None:
    assert local_path(location) == path


def test_the_place_is_opened_by_its_scheme(tmp_path: Path) -> None:
    assert isinstance(open_files(str(tmp_path)), LocalFiles)
    assert open_files(f"file:{tmp_path}").list().files == ()
    memory = open_files("memory://somewhere/")
    assert isinstance(memory, RemoteFiles)
    assert memory.root == "memory://somewhere"


@pytest.mark.parametrize(
    ("location", "options"), [("", {}), ("nonsense://x/y", {}), ("s3://b/k", {"no_such": 1})]
)
def test_a_place_that_cannot_be(location: str, options: dict[str, object]) -> None:
    with pytest.raises(FloodmarkError) as caught:
        open_files(location, options).list()
    assert caught.value.status in (2, 3)


def test_an_unknown_scheme_names_itself() -> None:
    with pytest.raises(WrongUse, match="nonsense://x/y") as caught:
        open_files("nonsense://x/y")
    assert caught.value.do


def test_a_path_through_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    files = open_files(str(tmp_path / "file" / "ck"))
    with pytest.raises(CannotRead, match="file/ck") as caught:
        files.list()
    assert "A part of the path is a file" in caught.value.why
    with pytest.raises(CannotRead):
        files.read("metadata")


def test_an_unreadable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # chmod does not stop root, which tests may run as.
    def denied(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("floodmark.storage.local.os.scandir", denied)
    files = open_files(str(tmp_path))
    for ask in (files.list, files.level):
        with pytest.raises(CannotRead, match="permission denied"):
            ask()


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: str, flags: int, **at: int) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("floodmark.storage.local.os.open", denied)
    with pytest.raises(CannotRead, match="permission denied"):
        open_files(str(tmp_path)).read("metadata")


def test_one_unreadable_subfolder_hides_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_bytes(b"x")
    (tmp_path / "state").mkdir()
    opened = os.open

    def choosy(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).endswith("state"):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr("floodmark.storage.local.os.open", choosy)
    listing = open_files(str(tmp_path)).list()
    assert [file.path for file in listing.files] == ["offsets/0"]
    assert listing.complete is False
    assert [path for path, _ in listing.unreadable] == ["state"]


def test_links_inside_a_place_are_told_of_and_not_followed(tmp_path: Path) -> None:
    place = tmp_path / "ck"
    (tmp_path / "real" / "offsets").mkdir(parents=True)
    (tmp_path / "real" / "offsets" / "0").write_bytes(b"x")
    place.mkdir()
    (place / "metadata").write_bytes(b"x")
    (place / "gone").symlink_to(tmp_path / "nowhere")
    (place / "above").symlink_to(tmp_path)
    (place / "offsets").symlink_to(tmp_path / "real" / "offsets")
    files = open_files(str(place))
    listing = files.list()
    assert [file.path for file in listing.files] == ["metadata"]
    assert sorted(path for path, _ in listing.unreadable) == ["above", "gone", "offsets"]
    assert all(reason.startswith("a link") for _, reason in listing.unreadable)
    assert not listing.complete
    assert files.level().folders == ()
    assert sorted(name for name, _ in files.level().others) == ["above", "gone", "offsets"]
    for ask in (
        lambda: files.read("offsets/0"),
        lambda: files.read("above/real/offsets/0"),
        lambda: files.level("offsets"),
        lambda: files.write("offsets/1", b"x"),
        lambda: files.create("offsets/1", b"x"),
        lambda: files.put("offsets/1", __file__),
        lambda: files.delete(["offsets/0"]),
        lambda: files.below("offsets").list(),
    ):
        with pytest.raises(UnsafePath, match="is a link"):
            ask()
    assert files.list("offsets").unreadable[0][0] == "offsets"
    assert [path.name for path in (tmp_path / "real" / "offsets").iterdir()] == ["0"]


def test_a_link_to_a_file_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "ck").mkdir()
    (tmp_path / "ck" / "metadata").symlink_to(tmp_path / "secret")
    files = open_files(str(tmp_path / "ck"))
    with pytest.raises(UnsafePath, match="metadata is a link"):
        files.read("metadata")
    assert isinstance(files.read_many(["metadata"])["metadata"], UnsafePath)
    assert files.create("metadata", b"x") is False
    files.write("metadata", b"mine")  # takes the link's place
    assert (tmp_path / "secret").read_bytes() == b"secret"
    assert files.read("metadata") == b"mine"
    (tmp_path / "ck" / "link").symlink_to(tmp_path / "secret")
    files.delete(["link"])
    assert (tmp_path / "secret").exists()


def test_the_place_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real" / "offsets").mkdir(parents=True)
    (tmp_path / "real" / "offsets" / "0").write_bytes(b"x")
    (tmp_path / "top").symlink_to(tmp_path / "real")
    files = open_files(str(tmp_path / "top"))
    assert _paths(files) == ["offsets/0"]
    assert files.read("offsets/0") == b"x"
    files.write("offsets/1", b"y")
    assert (tmp_path / "real" / "offsets" / "1").read_bytes() == b"y"


@pytest.mark.timeout(120)
def test_only_regular_files_are_read(tmp_path: Path) -> None:
    import os
    import socket

    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        files = open_files(str(tmp_path))
        assert dict(files.list().unreadable) == {
            "pipe": "a named pipe, not a file",
            "socket": "a socket, not a file",
        }
        for name in ("pipe", "socket"):
            with pytest.raises(UnsafePath, match=f"{name} is a"):
                files.read(name)
    with pytest.raises(UnsafePath, match="null is a device"):
        open_files("/dev").read("null")


@pytest.mark.parametrize(
    "path",
    [
        *("", "/etc/passwd", "../up", "a/../../b", "a//b", "a/", "./a", "a/.", "..", "a\\b"),
        *("C:/x", "c:x", "a\nb", "a\0b", "a\x1b[31mb", "a\x9bb", "a\udc80"),
    ],
)
def test_no_other_path_gets_past_the_door(files: Files, path: str) -> None:
    files.write("metadata", b"x")
    for ask in (
        lambda: files.read(path),
        lambda: files.write(path, b"x"),
        lambda: files.create(path, b"x"),
        lambda: files.put(path, __file__),
        lambda: files.delete([path]),
        lambda: files.below(path),
        lambda: Overlay(files).write(path, b"x"),
        lambda: Overlay(files).delete([path]),
        lambda: copy_file(files, "metadata", files, path),
        lambda: copy_file(files, path, files, "metadata"),
    ):
        with pytest.raises(UnsafePath) as refused:
            ask()
        assert refused.value.status == 3
        assert refused.value.what.isprintable()
    assert isinstance(files.read_many([path])[path], UnsafePath)
    if path:
        for look in (files.list, files.level):
            with pytest.raises(UnsafePath):
                look(path)
    assert _paths(files) == ["metadata"]


def test_odd_names_on_a_disk_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "a\nb").write_bytes(b"x")
    (tmp_path / "c\x1b[31m").mkdir()
    (tmp_path / "metadata").write_bytes(b"x")
    files = open_files(str(tmp_path))
    listing = files.list()
    assert [file.path for file in listing.files] == ["metadata"]
    assert sorted(path for path, _ in listing.unreadable) == ["'a\\nb'", "'c\\x1b[31m'"]
    assert files.level().folders == ()


@pytest.mark.services
def test_odd_names_in_a_bucket_are_told_of(s3: Any) -> None:
    """An object's name is any text: these are no parts of a folder, and lead nowhere."""
    files = open_files(s3.place("odd"), s3.storage_options)
    assert isinstance(files, RemoteFiles)
    bucket, _, prefix = files.folder.partition("/")
    for name in ("metadata", "offsets/\x7f", "a\\b"):
        files.fs.call_s3("put_object", Bucket=bucket, Key=f"{prefix}/{name}", Body=b"x")
    listing = files.list()
    assert [file.path for file in listing.files] == ["metadata"]
    assert sorted(path for path, _ in listing.unreadable) == ["'offsets/\\x7f'", "a\\b"]
    assert not listing.complete


class _Bucket:
    """A bucket whose objects have names that the server of the tests would make plain."""

    protocol = "s3"

    def __init__(self, *names: str) -> None:
        self.names = names

    req_kw: ClassVar[dict[str, str]] = {}

    def split_path(self, place: str) -> tuple[str, str, None]:
        bucket, _, key = place.partition("/")
        return bucket, key, None

    def call_s3(self, _method: str, Prefix: str, **_: object) -> dict[str, object]:  # noqa: N803
        return {"Contents": [{"Key": f"{Prefix}{name}", "Size": 1} for name in self.names]}


def test_names_that_lead_elsewhere_in_a_bucket_are_told_of() -> None:
    names = ("a/../../up", "a//b", "./c", "/d", "..", "c:/x")
    files = RemoteFiles("s3://b/ck", _Bucket("metadata", *names), "b/ck")
    listing = files.list()
    assert [file.path for file in listing.files] == ["metadata"]
    assert sorted(path for path, _ in listing.unreadable) == sorted(names)


class _AzureFile:
    """adlfs, asked to find what is below a file: a list of its name, without details."""

    protocol = "abfs"

    def find(self, place: str, **_: object) -> list[str]:
        return [place]

    def info(self, place: str) -> dict[str, str]:
        return {"name": place, "type": "file"}


class _NoBucket:
    """gcsfs, asked to write to a bucket that is not there."""

    protocol = ("gs", "gcs")

    def pipe_file(self, place: str, _data: bytes, **_: object) -> None:
        raise FileNotFoundError(place)


@pytest.mark.parametrize("change", ["write", "create"])
def test_a_bucket_that_is_not_there_is_named(change: str) -> None:
    files = RemoteFiles("gs://none/ck", _NoBucket(), "none/ck")
    with pytest.raises(CannotRead, match="there is no bucket none"):
        getattr(files, change)("metadata", b"x")


def test_a_file_on_azure_is_no_place() -> None:
    with pytest.raises(NotACheckpoint, match=r"data\.csv is a file, not a checkpoint folder"):
        RemoteFiles("abfs://b/data.csv", _AzureFile(), "b/data.csv").list()


def test_folders_without_end(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(150):
        deep = deep / "d"
        deep.mkdir()
    (tmp_path / "metadata").write_bytes(b"x")
    listing = open_files(str(tmp_path)).list()
    assert [file.path for file in listing.files] == ["metadata"]
    assert "folders deep" in listing.unreadable[0][1]


@pytest.mark.parametrize("change", ["write", "create", "delete"])
def test_a_disk_that_refuses_a_change(change: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    files = open_files(str(tmp_path))
    attempts = {
        "write": lambda: files.write("file/below", b"x"),
        "create": lambda: files.create("file/below", b"x"),
        "delete": lambda: files.delete(["file/below"]),
    }
    with pytest.raises(FloodmarkError, match="file/below"):
        attempts[change]()


def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "metadata").write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("floodmark.storage.local.os.fsync", full)
    files = open_files(str(tmp_path))
    for change in (files.write, files.create):
        with pytest.raises(FloodmarkError, match="metadata") as caught:
            change("metadata", b"new")
        assert "No space left" in caught.value.why
    assert [path.name for path in tmp_path.iterdir()] == ["metadata"]
    assert (tmp_path / "metadata").read_bytes() == b"old"


def test_a_file_of_this_machine_is_put_there(files: Files, tmp_path: Path) -> None:
    local = tmp_path / "local.sst"
    local.write_bytes(b"\0\1table" * 200_000)
    files.put("state/0/3/SSTs/000008.sst", str(local))
    files.put("state/0/3/SSTs/000008.sst", str(local))  # again, as after a crash
    assert files.read("state/0/3/SSTs/000008.sst") == local.read_bytes()
    assert _paths(files) == ["state/0/3/SSTs/000008.sst"]
    with pytest.raises(FloodmarkError):
        files.put("state/0/3/SSTs/000009.sst", str(tmp_path / "no such file"))
    assert _paths(files) == ["state/0/3/SSTs/000008.sst"]


def test_a_walk_over_a_disk_ends_where_it_is_told_to(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.txt").write_bytes(b"x")
    files = open_files(str(tmp_path))
    assert len(files.list(most=3).files) == 3
    assert not files.list(most=3).complete
    assert files.list(most=9).complete
    assert len(files.list().files) == 5


@pytest.mark.parametrize("location", ["/a\0b", "file:/a\0b", "file:/a%00b", "s3://a\0b"])
def test_a_null_character_is_in_no_path(location: str) -> None:
    """A note that a stranger wrote can name such a folder."""
    with pytest.raises(CannotRead, match="null character"):
        open_files(location)


@pytest.mark.services
def test_a_copy_on_s3_is_one_request(s3: Any) -> None:
    files = open_files(s3.place("copied"), s3.storage_options)
    goal = open_files(s3.place("copy"), s3.storage_options)
    names = [RelativePath(f"state/0/{n}/1.delta") for n in range(5)]
    for name in names:
        files.write(name, name.encode())
    with s3.requests() as sent:
        for name in names:
            copy_file(files, name, goal, name)
    assert sent == {"PUT": 5}
    assert [goal.read(name) for name in names] == [name.encode() for name in names]
    with pytest.raises(FileGone):
        copy_file(files, "state/0/9/1.delta", goal, "state/0/9/1.delta")
