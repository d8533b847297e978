"""Storage that refuses: each time clear words in bounded time, and the repeated command ends well.

No credentials, wrong ones, a bucket that is not there, a clock that is an hour off, a NameNode in
safe mode, a full disk: real servers, real file systems.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from carried import GO
from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.errors import CannotRead, CannotWrite, FloodmarkError, StoppedMidway
from mounted import can_mount, mounted
from services.emulators import Azurite, FakeGcs
from services.hdfs import HdfsServer
from services.s3 import S3Server

pytestmark = pytest.mark.services

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2"
CHECKPOINT = str(GOLDEN / "sales-hdfs" / "checkpoint")
KILOBYTES = 1024
"""Of the disk that becomes full."""
BOUND = 300.0
"""Seconds. An answer takes less than one; what is tried again, a few."""


@pytest.fixture(scope="module")
def strict(fetched: ModuleType) -> Iterator[S3Server]:
    """It asks who is there."""
    with S3Server(fetched.s3_server(), asks_who=True) as server:
        yield server


def go(options: dict[str, Any]) -> Carrying:
    return Carrying(execute=True, clock=GO.clock, storage=options)


def refused(work: Callable[[], object]) -> str:
    """The words of the error, which has to come in time and to say what to do."""
    began = time.monotonic()
    with pytest.raises((CannotRead, CannotWrite, StoppedMidway)) as caught:
        work()
    assert time.monotonic() - began < BOUND
    assert caught.value.do
    return f"{caught.value.what} {caught.value.why} {caught.value.do}"


# S3 ---------------------------------------------------------------------------------------------


def without_credentials(folder: Path) -> dict[str, str]:
    found = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    return {**found, "HOME": str(folder), "AWS_EC2_METADATA_DISABLED": "true"}


@pytest.mark.parametrize("verb", ["inspect", "copy"])
def test_no_credentials(verb: str, strict: S3Server, tmp_path: Path) -> None:
    place = strict.place("none")
    words = {"inspect": [place], "copy": [CHECKPOINT, place, "--execute", "--wait", "0"]}[verb]
    storage = ["--storage", f"endpoint_url={strict.endpoint}"]
    command = [str(Path(sys.executable).with_name("floodmark")), verb, *words, *storage]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
        env=without_credentials(tmp_path),
    )
    assert done.returncode == 3, done.stderr
    assert "there are no credentials for this storage" in done.stderr
    assert "AWS_PROFILE" in done.stderr


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"key": "stranger"}, "does not know the access key"),
        ({"secret": "guessed"}, "the secret does not fit"),
    ],
)
def test_wrong_credentials(wrong: dict[str, str], words: str, strict: S3Server) -> None:
    options, place = {**strict.storage_options, **wrong}, strict.place("wrong")
    assert words in refused(lambda: api.inspect(place, options))
    assert words in refused(lambda: api.copy(CHECKPOINT, place, carrying=go(options)))
    assert api.copy(CHECKPOINT, place, carrying=go(strict.storage_options)).executed


def test_a_clock_that_is_an_hour_off(strict: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    import botocore.auth

    now, place = botocore.auth.get_current_datetime, strict.place("clock")
    for hours in (-1, 1):
        with monkeypatch.context() as patched:
            off = timedelta(hours=hours)
            patched.setattr(
                "botocore.auth.get_current_datetime", lambda *told, off=off: now(*told) + off
            )
            copied = go(strict.storage_options)
            said = refused(lambda copied=copied: api.copy(CHECKPOINT, place, carrying=copied))  # type: ignore[misc]
            assert "refuses the clock of this machine" in said
            assert "Set the clock" in said
    assert api.copy(CHECKPOINT, place, carrying=go(strict.storage_options)).executed


def test_a_wrong_bucket(s3: S3Server) -> None:
    wrong, options = "s3://no-such-bucket/cp", s3.storage_options
    verbs: dict[str, Callable[[], object]] = {
        "inspect": lambda: api.inspect(wrong, options),
        "doctor": lambda: api.doctor(wrong, storage=options),
        "copy": lambda: api.copy(CHECKPOINT, wrong, carrying=go(options)),
        "backup": lambda: api.backup(CHECKPOINT, wrong, carrying=go(options)),
        "repartition": lambda: api.repartition(
            CHECKPOINT, wrong, partitions=3, carrying=go(options)
        ),
    }
    for name, verb in verbs.items():
        assert "there is no bucket no-such-bucket" in refused(verb), name


# Azure and Google -------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("verb", [api.copy, api.upgrade, api.backup])
def test_a_wrong_container_of_azure(verb: Callable[..., object], azurite: Azurite) -> None:
    wrong = go(azurite.storage_options)
    said = refused(lambda: verb(CHECKPOINT, "abfs://no-such-container/cp", carrying=wrong))
    assert "there is no such container" in said


@pytest.mark.soak
@pytest.mark.parametrize("verb", [api.copy, api.upgrade, api.backup])
def test_a_wrong_bucket_of_google(verb: Callable[..., object], gcs: FakeGcs) -> None:
    said = refused(
        lambda: verb(CHECKPOINT, "gs://no-such-bucket/cp", carrying=go(gcs.storage_options))
    )
    assert "there is no bucket no-such-bucket" in said


@pytest.mark.soak
def test_a_wrong_key_of_azure(azurite: Azurite) -> None:
    place, right = azurite.place("wrong"), azurite.storage_options
    told = right["connection_string"].replace("AccountKey=", "AccountKey=AAAA")
    wrong = {**right, "connection_string": told}
    assert "does not accept the key" in refused(lambda: api.inspect(place, wrong))
    assert "does not accept the key" in refused(
        lambda: api.copy(CHECKPOINT, place, carrying=go(wrong))
    )


# HDFS -------------------------------------------------------------------------------------------


def test_a_name_node_in_safe_mode(hdfs: HdfsServer) -> None:
    place = hdfs.web(hdfs.place("safe"))
    old, new = f"{place}/ck", f"{place}/new"
    api.copy(CHECKPOINT, old, carrying=GO)
    with hdfs.safe_mode():
        assert api.inspect(old).committed_batch == 2
        for verb in (api.copy, api.upgrade):
            said = refused(lambda verb=verb: verb(old, new, carrying=GO))  # type: ignore[misc]
            assert "the NameNode is in safe mode" in said
        said = refused(lambda: api.rewind(old, to_batch=1, accept="out-of-reach", carrying=GO))
        assert "the NameNode is in safe mode" in said
    assert api.inspect(old).committed_batch == 2
    assert api.upgrade(old, new, carrying=GO).executed
    assert api.rewind(old, to_batch=1, accept="out-of-reach", carrying=GO).executed


# A disk -----------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if not can_mount(tmp_path / "try"):
        pytest.skip("the tests may not mount a disk here")
    with mounted(tmp_path / "disk", kilobytes=KILOBYTES) as disk:
        yield disk


def fill(disk: Path, room: int) -> None:
    """So many kilobytes are left, apart from what a verb has written."""
    filler = disk / "filler"
    filler.unlink(missing_ok=True)
    with filler.open("wb", buffering=0) as file:
        try:
            for _ in range(KILOBYTES // 4):
                file.write(b"\0" * 4096)
        except OSError:
            pass
        file.truncate(max(file.tell() - room * 1024, 0))


VERBS: dict[str, Callable[[str, str], Any]] = {
    "copy": lambda old, new: api.copy(old, new, carrying=GO),
    "upgrade": lambda old, new: api.upgrade(old, new, carrying=GO),
    "repartition": lambda old, new: api.repartition(old, new, partitions=9, carrying=GO),
    "backup": lambda old, new: api.backup(old, new, carrying=GO),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("provider", ["hdfs", "rocksdb"])
def test_a_disk_that_becomes_full(
    verb: str, provider: str, small_disk: Path, tmp_path: Path
) -> None:
    old, new = tmp_path / "old", small_disk / "new"
    shutil.copytree(GOLDEN / f"sales-{provider}" / "checkpoint", old)
    before = {path: path.read_bytes() for path in old.rglob("*") if path.is_file()}
    filled = 0
    for room in range(8, KILOBYTES, 24):  # full at another point each time
        fill(small_disk, room)
        began = time.monotonic()
        try:
            VERBS[verb](str(old), str(new))
        except FloodmarkError as error:
            filled += 1
            assert error.do, error  # noqa: PT017 - it may end well, too
            said = f"{error.what} {error.why} {error.do}"
            assert "full" in said or "No space left" in said, said
        else:
            break
        assert time.monotonic() - began < BOUND
    (small_disk / "filler").unlink()
    assert filled
    VERBS[verb](str(old), str(new))  # the same command, now with room
    assert {path: path.read_bytes() for path in old.rglob("*") if path.is_file()} == before
    goal = str(new)
    if verb == "backup":
        goal = str(tmp_path / "restored")
        api.restore(str(new), goal, carrying=GO)
    assert api.inspect(goal).committed_batch == api.inspect(str(old)).committed_batch
    assert not api.doctor(goal, read_data=True)


def test_no_room_for_what_is_unpacked(small_disk: Path, tmp_path: Path) -> None:
    """RocksDB's files are unpacked in the folder for temporary files."""
    fill(small_disk, 8)
    command = [str(Path(sys.executable).with_name("floodmark")), "state"]
    command.append(str(GOLDEN / "sales-rocksdb" / "checkpoint"))
    environment = {**os.environ, "TMPDIR": str(small_disk)}
    told = {"capture_output": True, "text": True, "timeout": BOUND, "check": False}
    done = subprocess.run(command, env=environment, **told)  # type: ignore[call-overload]
    assert done.returncode == 3, done.stderr
    assert str(small_disk) in done.stderr
    assert "full" in done.stderr or "No space left" in done.stderr
    assert "Traceback" not in done.stderr
