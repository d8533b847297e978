"""`run` where Spark's storage or its master refuses: clear words in bounded time, then it goes on.

Each time the cause is real: a server that asks who is there, a bucket that is not there, a NameNode
in safe mode, a full disk, a master that takes connections and says nothing. Once it is gone, the
same command ends well, and the sink has what a batch query over all input gives. With a clock that
is an hour off, the run goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from s3_stream import TOTAL, Commands, feed, oracle, written

from clocks import COMPILER, clock_off_by
from floodmark import api
from mounted import can_mount, mounted
from ports import silent_listener
from services.s3 import S3Server

if TYPE_CHECKING:
    from types import ModuleType

    from services.hdfs import HdfsServer

pytestmark = [pytest.mark.spark, pytest.mark.services, pytest.mark.soak, pytest.mark.timeout(900)]

BOUND = 240.0
"""Seconds, on a machine with much other work; Hadoop by itself tries some things for minutes."""
FAILED, CANNOT_READ, MIDWAY = 1, 3, 5


@pytest.fixture(scope="module")
def strict(fetched: ModuleType) -> Iterator[S3Server]:
    """It asks who is there."""
    with S3Server(fetched.s3_server(), asks_who=True) as server:
        yield server


def refused(commands: Commands, app: str, *words: str) -> None:
    began = time.monotonic()
    status, said = commands.tried(app, "a")
    took = time.monotonic() - began
    print(f"\nstatus {status} after {took:.0f} s: {said[-700:]}")
    assert status in (FAILED, CANNOT_READ, MIDWAY), said
    assert "Traceback" not in said, said
    for word in words:
        assert word in said, said
    assert took < BOUND


def stream(s3: S3Server, folder: Path, conf: dict[str, str] | None = None) -> tuple[Commands, str]:
    commands = Commands(s3, folder, conf)
    feed(commands.orders, *range(1, 7))
    return commands, commands.write("app.py", TOTAL)


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"access.key": None, "secret.key": None}, "redentials"),
        ({"secret.key": "guessed"}, "the secret does not fit the access key"),
        ({"access.key": "stranger"}, "does not know the access key"),
    ],
    ids=["none", "wrong secret", "wrong key"],
)
def test_credentials(
    changed: dict[str, str | None],
    word: str,
    strict: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    given = {f"spark.hadoop.fs.s3a.{key}": value for key, value in changed.items()}
    conf = {key: value for key, value in {**strict.spark_conf, **given}.items() if value}
    commands, app = stream(strict, tmp_path, conf)
    refused(commands, app, word)
    commands.conf = Commands(strict, tmp_path).conf
    commands.stream(app, "a")


def test_a_wrong_bucket(s3: S3Server, tmp_path: Path) -> None:
    commands, app = stream(s3, tmp_path)
    right, commands.place = commands.place, "s3://no-such-bucket/cp"
    refused(commands, app, "no-such-bucket")
    commands.place = right
    commands.stream(app, "a")


@pytest.mark.skipif(COMPILER is None, reason="nothing here compiles what sets a clock")
@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_an_hour_off(hours: int, strict: S3Server, tmp_path: Path) -> None:
    """The server refuses such a time; S3A's kit takes the server's and asks again."""
    commands, app = stream(strict, tmp_path)
    commands.environment = clock_off_by(3600 * hours, tmp_path)
    commands.stream(app, "a")
    commands.environment = {}
    feed(commands.orders, 7, 8)
    commands.stream(app, "a")


def test_a_name_node_in_safe_mode(hdfs: HdfsServer, s3: S3Server, tmp_path: Path) -> None:
    commands, app = stream(s3, tmp_path)
    place = hdfs.place("safe")
    commands.place = hdfs.rpc(place)
    with hdfs.safe_mode():
        refused(commands, app, "afe mode")
    commands.stream(app, "a")
    feed(commands.orders, 7, 8)
    with hdfs.safe_mode():
        refused(commands, app, "afe mode")
    commands.stream(app, "a")
    assert api.inspect(f"{hdfs.web(place)}/a/checkpoint").committed_batch == 1


def test_a_full_disk(s3: S3Server, tmp_path: Path) -> None:
    if not can_mount(tmp_path / "try"):
        pytest.skip("the tests may not mount a disk here")
    commands, app = stream(s3, tmp_path)
    with mounted(tmp_path / "disk", kilobytes=1024) as disk:
        commands.place = str(disk)
        commands.conf += ["--allow", "checkpoint-on-local-disk"]
        commands.stream(app, "a")
        feed(commands.orders, 7, 8)
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * 4096)
            except OSError:
                pass
        refused(commands, app, "o space left")
        filler.unlink()
        commands.stream(app, "a")


def test_a_master_that_takes_connections_and_says_nothing(s3: S3Server, tmp_path: Path) -> None:
    commands, app = stream(s3, tmp_path)
    with silent_listener() as port:
        told = commands.conf.index("local[2]")
        commands.conf[told] = f"spark://127.0.0.1:{port}"
        refused(commands, app, f"the master spark://127.0.0.1:{port} does not answer")
    commands.conf[told] = "local[2]"
    commands.stream(app, "a")
    assert written(commands.sink) == oracle(commands.orders)
