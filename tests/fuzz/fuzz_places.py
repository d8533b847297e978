"""The places that the campaign damages: golden checkpoints, with what floodmark keeps beside them.

A place is a tree in memory: path → content. The same seed has to give the same case on every
run, so whatever floodmark draws by chance or reads from a clock is fixed while trees are made.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from floodmark.cli.main import run

GOLDEN = Path(__file__).parents[1] / "golden"
LONG_AGO = 1_700_000_000
CHECKPOINT, NEW, REPO, PLAN, BAIT = "cp", "new", "repo", "plan.json", "home"
TEMPORARY = "tmp"
_WITH_HISTORY = ("sales-hdfs", "sales-rocksdb", "files", "kafka", "join-v3", "windowed")
BAITS = {
    "thesis.txt": b"the only copy",
    ".bashrc": b"export PATH\n",
    "out/_spark_metadata/0": b'v1\n{"path":"x","size":1,"action":"add"}',
    "out/part-0.parquet": b"PAR1",
    "offsets/0": b"v1\n{}\n0",
    "empty/.keep": b"",
}


@dataclass(frozen=True)
class Link:
    """A symbolic link instead of a file or of a folder."""

    to: str


@dataclass(frozen=True)
class Sparse:
    """A file of this many bytes, none of which is on the disk."""

    size: int


@dataclass(frozen=True)
class HardLink:
    """A second name of a file elsewhere."""

    to: str


class Fifo:
    """A named pipe that nobody writes into."""


class Socket:
    """A socket that nobody listens on."""


Content = bytes | Link | HardLink | Sparse | Fifo | Socket
Tree = dict[str, Content]


@dataclass(frozen=True)
class Template:
    name: str
    tree: Tree
    """Relative to the case's folder."""
    has_repo: bool = False
    has_plan: bool = False


def start_note(query_id: str, place: str) -> bytes:
    value = {
        "floodmark": "start-note",
        "version": 1,
        "pipeline": "sales",
        "application": "app.py",
        "query_id": query_id,
        "run_id": "r",
        "sink": "parquet",
        "sink_options": {"path": f"{place}/{BAIT}/out"},
        "sources": [
            {
                "kind": "text",
                "options": {"path": f"{place}/{BAIT}"},
                "description": "FileStreamSource",
                "schema_ddl": "value STRING",
            }
        ],
        "conf": {"spark.sql.streaming.minBatchesToRetain": "5"},
        "nodes": [{"kind": "Filter", "details": {"condition": "x > 1"}, "children": []}],
        "plan": "Aggregate [k], [k, sum(v)]\n+- Relation",
        "schema_json": '{"type":"struct","fields":[]}',
        "spark_version": "4.2.0",
        "java_version": "17",
        "output_mode": "append",
        "trigger": "once",
        "next_batch": 0,
        "started_ms": LONG_AGO * 1000,
        "host": "elsewhere",
        "pid": 7,
        "parameters": {"day": "x"},
    }
    return json.dumps(value).encode()


def lease() -> bytes:
    value = {
        "floodmark": "lease",
        "version": 1,
        "run": "r",
        "pipeline": "sales",
        "host": "elsewhere",
        "processes": [{"pid": 4194303, "started": 5}],
        "beat": 3,
        "beat_ms": LONG_AGO * 1000,
    }
    return json.dumps(value).encode()


def templates(place: Path) -> list[Template]:
    """Every golden checkpoint as it is, and some with notes, journals, plans and backups."""
    found = [
        Template(f"{folder.parent.parent.name}/{folder.parent.name}", _below(folder, CHECKPOINT))
        for folder in sorted(GOLDEN.glob("*/*/checkpoint"))
    ]
    for name in _WITH_HISTORY:
        found += _with_history(place, next(t for t in found if t.name == f"4.2/{name}"))
    return found


def _with_history(place: Path, golden: Template) -> list[Template]:
    where = {CHECKPOINT: str(place / CHECKPOINT), NEW: str(place / NEW)}
    noted = dict(golden.tree)
    metadata = noted[f"{CHECKPOINT}/metadata"]
    assert isinstance(metadata, bytes)
    query_id = json.loads(metadata)["id"]
    noted[f"{CHECKPOINT}/_floodmark/starts/1.json"] = start_note(query_id, str(place))
    noted[f"{CHECKPOINT}/_floodmark/starts/2.json"] = start_note(query_id, str(place))
    noted[f"{CHECKPOINT}/_floodmark/lease.json"] = lease()
    found = [Template(f"{golden.name} noted", noted)]
    backup = _made(place, noted, ["backup", where[CHECKPOINT], str(place / REPO), "--execute"])
    found.append(Template(f"{golden.name} backed up", backup, has_repo=True))
    saved = ["--out", str(place / PLAN)]
    rewind = ["rewind", where[CHECKPOINT], "--to-batch", "1"]
    rewind += ["--accept", "out-of-reach", "--accept", "skips"]
    for name, tree, command in (
        ("rewind", noted, rewind),
        ("copy", noted, ["copy", where[CHECKPOINT], where[NEW]]),
        ("upgrade", noted, ["upgrade", where[CHECKPOINT], where[NEW]]),
        ("restore", backup, ["restore", str(place / REPO), where[NEW]]),
        ("compact", noted, ["compact", where[CHECKPOINT], "--keep", "1"]),
        ("repartition", noted, ["repartition", where[CHECKPOINT], where[NEW], "--partitions", "3"]),
        ("convert", noted, ["convert", where[CHECKPOINT], where[NEW], "--provider", "rocksdb"]),
    ):
        planned = _made(place, tree, [*command, *saved])
        if name in ("repartition", "convert") and PLAN not in planned:
            continue  # it has no state, or RocksDB keeps it already
        assert PLAN in planned, (golden.name, command)
        found.append(Template(f"{golden.name} {name} plan", planned, has_plan=True))
    done = _made(place, noted, [*rewind, "--execute"])
    assert any("/journal/" in path for path in done), golden.name
    found.append(Template(f"{golden.name} rewound", done))
    found.append(Template(f"{golden.name} stopped midway", _unfinished(done)))
    return found


def _unfinished(tree: Tree) -> Tree:
    def begun(path: str, data: Content) -> Content:
        if "_floodmark/journal/" not in path or not isinstance(data, bytes):
            return data
        return json.dumps({**json.loads(data), "stage": "begun"}).encode()

    return {path: begun(path, data) for path, data in tree.items()}


def _made(place: Path, tree: Tree, command: list[str]) -> Tree:
    """What a command makes of a tree, always the same."""
    put(place, tree)
    chance = random.Random(7)
    with (
        mock.patch("os.urandom", chance.randbytes),
        CLOCK.standing(LONG_AGO + 86_400.0),
        mock.patch.dict(os.environ, {"FLOODMARK_DEBUG": "0"}),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        run(command)
    tree = {}
    for name in (CHECKPOINT, NEW, REPO):
        if (place / name).is_dir():
            tree |= _below(place / name, name)
    if (place / PLAN).exists():
        tree[PLAN] = (place / PLAN).read_bytes()
    return tree


def _below(folder: Path, name: str) -> Tree:
    return {
        f"{name}/{path.relative_to(folder)}": path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def clear(place: Path) -> None:
    for name in (CHECKPOINT, NEW, REPO, PLAN):
        target = place / name
        if target.is_dir() and not target.is_symlink():
            _remove(target)
        elif target.is_symlink() or target.exists():
            target.unlink()


def _remove(folder: Path) -> None:
    """A path as long as can be has folders deeper than Python's removal goes by itself."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        shutil.rmtree(folder)
    finally:
        sys.setrecursionlimit(usual)


def put(place: Path, tree: Tree) -> None:
    """The tree on the disk, as old as a checkpoint whose query has stopped long ago."""
    clear(place)
    root = os.path.realpath(os.fsencode(place))
    folders: set[bytes] = set()
    for name, content in tree.items():
        path = root + b"/" + os.fsencode(name)
        # Two mutations may want one name to be both a file and a folder: the first one has it.
        with contextlib.suppress(OSError):
            _put(path, content, folders)
    for folder in folders:
        with contextlib.suppress(OSError):
            os.utime(folder, (LONG_AGO, LONG_AGO))


def _put(path: bytes, content: Content, folders: set[bytes]) -> None:
    folder = path.rsplit(b"/", 1)[0]
    if folder not in folders:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - names may be no text
        if os.path.realpath(folder) != folder:
            return  # an earlier mutation made a link of it: nothing is laid where it leads
        folders.add(folder)
    if isinstance(content, Link):
        os.symlink(content.to, path)  # noqa: PTH211
        return
    if isinstance(content, HardLink):
        os.link(content.to, path)
        return
    if isinstance(content, Fifo):
        os.mkfifo(path)
        return
    if isinstance(content, Socket):
        os.mknod(path, stat.S_IFSOCK | 0o600)
        return
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW)
    try:
        if isinstance(content, Sparse):
            os.truncate(handle, content.size)
        else:
            os.write(handle, content)
        os.utime(handle, (LONG_AGO, LONG_AGO))
    finally:
        os.close(handle)


def lay_bait(place: Path) -> None:
    """The same each time, times included."""
    shutil.rmtree(place / BAIT, ignore_errors=True)
    for name, data in BAITS.items():
        target = place / BAIT / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    for path in (place / BAIT, *(place / BAIT).rglob("*")):
        os.utime(path, (LONG_AGO, LONG_AGO))


def make_temporary(place: Path) -> None:
    """Temporary files lie in memory as well, and it shows which are left."""
    shutil.rmtree(place / TEMPORARY, ignore_errors=True)
    (place / TEMPORARY).mkdir()
    tempfile.tempdir = str(place / TEMPORARY)


def digest(*folders: Path) -> list[tuple[str, ...]]:
    """What is below, in a form that any change shows in: names, kinds, modes, times, contents."""
    return sorted(entry for folder in folders for entry in _entries(os.fsencode(folder)))


def _entries(path: bytes) -> Iterator[tuple[str, ...]]:
    try:
        about = os.lstat(path)
    except FileNotFoundError:
        return
    content = ""
    if about.st_size < 1 << 20 and os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
        with open(path, "rb") as file:
            content = file.read().hex()
    yield (os.fsdecode(path), oct(about.st_mode), str(about.st_mtime_ns), content)
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
        for name in os.listdir(path):  # noqa: PTH208
            yield from _entries(path + b"/" + name)


def signs(*folders: Path) -> list[tuple[bytes | int, ...]]:
    """As `digest`, without contents: all times were set to LONG_AGO, so a write shows in them."""
    found: list[tuple[bytes | int, ...]] = []
    for folder in folders:
        _signs(os.fsencode(folder), found)
    return found


def _signs(path: bytes, found: list[tuple[bytes | int, ...]]) -> None:
    try:
        about = os.lstat(path)
    except FileNotFoundError:
        return
    times = (about.st_mtime_ns, about.st_ctime_ns)
    found.append((path, about.st_mode, about.st_ino, about.st_size, about.st_nlink, *times))
    if stat.S_ISDIR(about.st_mode):
        for name in os.listdir(path):  # noqa: PTH208
            _signs(path + b"/" + name, found)


class Clock:
    """Waits cost nothing: the clock goes on by as much."""

    def __init__(self) -> None:
        self._waited = 0.0
        self._stands_at: float | None = None
        self._time, self._monotonic = time.time, time.monotonic

    def install(self) -> None:
        """For this process and its forks. First of all: some take time.sleep when imported."""
        time.time, time.monotonic, time.sleep = self.time, self.monotonic, self.sleep

    def time(self) -> float:
        return (self._stands_at or self._time()) + self._waited

    def monotonic(self) -> float:
        return self._monotonic() + self._waited

    def sleep(self, seconds: float) -> None:
        self._waited += max(seconds, 0.0)

    @contextlib.contextmanager
    def standing(self, at: float) -> Iterator[None]:
        """Goes on by waits alone, from a time that is always the same."""
        before, self._stands_at, self._waited = self._waited, at, 0.0
        try:
            yield
        finally:
            self._waited, self._stands_at = before, None


CLOCK = Clock()
