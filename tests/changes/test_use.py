"""Is a query running? What proves that one does, or that none does; and what has to be asked."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import samples
from floodmark import api
from floodmark.api.arguments import seconds
from floodmark.changes import in_use as use
from floodmark.changes.apply import Carrying
from floodmark.changes.in_use import MAYBE_RUNNING, Clock, maybe_running, user_of
from floodmark.engine.start import lease
from floodmark.errors import InUse, WouldLose, WrongUse
from floodmark.storage.files import open_files
from floodmark.storage.machine import query as machine
from patience import wait_until

if TYPE_CHECKING:
    from services.s3 import S3Server

pytestmark = pytest.mark.doubts
MINUTE = 60_000
SEEN = Clock(pause=lambda seconds: None)


@pytest.fixture(autouse=True)
def some_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some JVM runs on the machine, which proves nothing either way."""
    monkeypatch.setattr(use, "no_jvm_here", lambda files: False)


def log(batches: int, committed: int) -> dict[str, bytes]:
    return dict(samples.logs(range(batches), range(committed)))


@pytest.fixture
def cp(tmp_path: Path) -> Path:
    place = tmp_path / "ck"
    samples.write(place, {**log(4, 4)})
    return place


def aged(cp: Path, minutes: float, apart: float = 0.0) -> None:
    """The log's newest batch is this old; its batches came `apart` minutes from each other."""
    now = time.time()
    for path in cp.rglob("*"):
        if path.is_file() and path.name.isdecimal():
            age = minutes + apart * (3 - int(path.name))
            os.utime(path, (now - age * 60, now - age * 60))


def rewind(cp: Path, *accept: str) -> api.Change:
    carrying = Carrying(execute=True, clock=SEEN)
    return api.rewind(str(cp), to_batch=1, accept=accept, carrying=carrying)


def test_an_idle_query_is_asked_about_and_not_taken_for_dead(cp: Path) -> None:
    aged(cp, minutes=0.3)
    plan = api.rewind(str(cp), to_batch=1).plan
    assert plan.unaccepted == (MAYBE_RUNNING,)
    assert "Its last batch is committed" in plan.consequences[-1].words
    with pytest.raises(WouldLose, match="maybe-running has to be accepted first"):
        rewind(cp)
    assert sorted(path.name for path in (cp / "offsets").iterdir()) == ["0", "1", "2", "3"]
    assert rewind(cp, MAYBE_RUNNING).executed


@pytest.mark.parametrize(
    ("minutes", "apart", "asked"),
    [(4, 0, True), (6, 0, False), (100, 15, True), (200, 15, False)],
)
def test_how_long_a_query_may_be_quiet(cp: Path, minutes: float, apart: float, asked: bool) -> None:
    aged(cp, minutes, apart)
    assert (maybe_running(open_files(str(cp)), SEEN) is not None) is asked


@pytest.mark.parametrize(("hours", "asked"), [(3, True), (25, False)])
def test_a_batch_in_flight_may_take_a_day(cp: Path, hours: float, asked: bool) -> None:
    (cp / "commits/3").unlink()
    aged(cp, minutes=hours * 60)
    found = maybe_running(open_files(str(cp)), SEEN)
    assert (found is not None) is asked
    assert not asked or "Batch 3 is in flight" in str(found)


def test_a_run_that_ended_with_its_lease_is_not_asked_about(cp: Path) -> None:
    files = open_files(str(cp))
    held = lease.take(files, "sales", None)
    samples.write(cp, log(5, 5))
    held.release()
    assert maybe_running(files, SEEN) is None
    assert rewind(cp).executed


def test_a_run_that_was_killed_is_not_asked_about(cp: Path) -> None:
    child = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from floodmark.engine.start.lease import take; "
            "from floodmark.storage.files import open_files; "
            "take(open_files(sys.argv[1]), 'sales', None)",
            str(cp),
        ],
        check=True,
    )
    assert child.returncode == 0
    (cp / "commits/3").unlink()
    assert maybe_running(open_files(str(cp)), SEEN) is None


def test_a_plain_query_after_a_run_of_floodmark_is_asked_about(cp: Path) -> None:
    files = open_files(str(cp))
    lease.take(files, "sales", None).release()
    later = time.time() + 2
    samples.write(cp, log(5, 5))
    for name in ("offsets/4", "commits/4"):
        os.utime(cp / name, (later, later))
    assert maybe_running(files, Clock(now_ms=lambda: int(later * 1000) + MINUTE)) is not None


def test_what_floodmark_itself_wrote_is_no_sign_of_a_query(cp: Path) -> None:
    aged(cp, minutes=10)
    assert rewind(cp).executed
    assert maybe_running(open_files(str(cp)), SEEN) is None
    assert api.undo(str(cp), carrying=Carrying(execute=True, clock=SEEN)).executed
    assert maybe_running(open_files(str(cp)), SEEN) is None


def test_a_machine_without_a_jvm_proves_that_no_query_runs(
    cp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(use, "no_jvm_here", machine.no_jvm_here)
    monkeypatch.setattr(machine, "all_jvms", lambda: iter(()))
    monkeypatch.setattr(machine, "sees_every_process", lambda: True)
    assert maybe_running(open_files(str(cp)), SEEN) is None
    monkeypatch.setattr(machine, "sees_every_process", lambda: False)  # in a container
    assert maybe_running(open_files(str(cp)), SEEN) is not None


def test_a_jvm_that_has_a_file_of_it_open_uses_it(cp: Path, tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.symlink_to(sys.executable)
    code = "import sys; f = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    child = subprocess.Popen(
        [str(java), "-c", code, str(cp / "offsets/3")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        found = user_of(open_files(str(cp)), SEEN)
        assert found is not None
        assert f"process {child.pid} (java) has" in found
    finally:
        child.kill()
        child.wait()
    aged(cp, minutes=10)
    assert user_of(open_files(str(cp)), SEEN) is None


@pytest.mark.services
@pytest.mark.parametrize("minutes_off", [-5, 5, 60])
def test_the_storages_own_clock_counts(
    s3: S3Server, minutes_off: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our clock is off; the files' times and the storage's are not."""
    files = open_files(s3.place("clock"), s3.storage_options)
    for path, data in {**log(4, 4)}.items():
        files.write(path, data)
    here = time.time
    monkeypatch.setattr("floodmark.changes.in_use.time.time", lambda: here() + minutes_off * 60)
    changed: list[float] = []

    def query(seconds: float) -> None:
        changed.append(seconds)
        files.write("offsets/4", samples.offset_entry(4, samples.kafka_offset(4)))

    clock = Clock(pause=query)
    assert maybe_running(files, clock) is not None
    assert "offsets/4 changed while it was watched" in str(user_of(files, clock))
    assert changed
    assert files.level("_floodmark").files == ()


def test_watching_says_what_it_saw(cp: Path) -> None:
    aged(cp, minutes=30)
    quiet = Carrying(clock=SEEN, watch_seconds=120)
    assert (
        api.rewind(str(cp), to_batch=1, carrying=quiet)
        .plan.notes[0]
        .startswith("Watched for 120 seconds, with 121 looks: nothing was written.")
    )

    def query(seconds: float) -> None:
        samples.write(cp, log(5, 4))

    busy = Carrying(clock=Clock(pause=query), watch_seconds=120)
    shown = api.rewind(str(cp), to_batch=1, carrying=busy).plan
    assert shown.notes[0] == "Watched for 1 second: offsets/4 changed. A query runs on it."
    (cp / "offsets/4").unlink()
    with pytest.raises(InUse, match="offsets/4 changed"):
        api.rewind(str(cp), to_batch=1, carrying=replace(busy, execute=True))
    assert sorted(path.name for path in (cp / "commits").iterdir()) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("named", ["{cp}", "file://{cp}", "--checkpoint={cp}", "ck"])
def test_a_jvm_that_is_told_of_the_checkpoint_is_a_sign(cp: Path, named: str) -> None:
    """Though the log has been quiet for long."""
    aged(cp, minutes=60)
    assert maybe_running(open_files(str(cp)), SEEN) is None
    child = subprocess.Popen(
        ["java", "-c", "input()", "app.py", named.format(cp=cp)],
        executable=sys.executable,
        stdin=subprocess.PIPE,
        cwd=cp.parent,
    )
    try:
        found = wait_until(lambda: maybe_running(open_files(str(cp)), SEEN))
        assert f"Process {child.pid} (java, app.py) has it in its command line." in found
    finally:
        child.kill()
        child.wait()


def test_lengths_of_time() -> None:
    assert [seconds(one) for one in (None, 3, "90", "90s", "2m", "1.5 h")] == [
        0,
        3,
        90,
        90,
        120,
        5400,
    ]
    with pytest.raises(WrongUse, match="not a length of time"):
        seconds("soon")
