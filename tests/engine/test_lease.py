"""Who uses a checkpoint: a killed run never blocks the next one."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floodmark.engine.start import lease
from floodmark.errors import CannotRead, InUse, Superseded
from floodmark.storage.files import Files, open_files, place_name
from floodmark.storage.lease_files import EPOCHS, parse
from floodmark.storage.machine.process import Process, host_name, is_running, process, this_process

if TYPE_CHECKING:
    from services.s3 import S3Server


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return open_files(str(tmp_path / "ck"))


def holder(**changes: object) -> lease.Holder:
    now = int(time.time() * 1000)
    # Another process that lives: what is held by this one, it knows by itself.
    made = lease.Holder("run-1", "sales", host_name(), (process(os.getppid()),), 3, now)
    lease._found_gone.clear()  # what another test has found
    return replace(made, **changes)  # type: ignore[arg-type]


def put(files: Files, who: lease.Holder) -> None:
    files.write(lease.PATH, lease.render(who))


def no_pause(_seconds: float) -> None:
    return


def test_nobody_holds_a_checkpoint_without_a_lease(files: Files) -> None:
    assert lease.live_holder(files) is None


def test_a_holder_comes_back_as_it_was_written() -> None:
    who = holder()
    assert parse(lease.render(who)) == who


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"run": 1}', b'{"processes": 7}', b"[" * 100_000, b"7"]
)
def test_an_unreadable_lease_holds_nothing(files: Files, data: bytes) -> None:
    files.write(lease.PATH, data)
    assert lease.live_holder(files) is None


def test_a_living_process_of_this_machine_holds_it(files: Files) -> None:
    put(files, holder())
    found = lease.live_holder(files, no_pause)
    assert found is not None
    assert str(os.getppid()) in found.words


def test_a_lease_from_before_this_process_began_anew_holds_nothing(files: Files) -> None:
    put(files, holder(run="before-the-jvm-died"))
    assert lease.live_holder(files, no_pause) is not None
    lease.leave_behind("before-the-jvm-died")
    assert lease.live_holder(files, no_pause) is None


def test_a_killed_process_does_not_hold_it(files: Files) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    who = holder(processes=(process(child.pid),))
    put(files, who)
    assert lease.live_holder(files, no_pause) is not None
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    # Not waited for yet: the number is still taken, by a zombie.
    assert lease.live_holder(files, no_pause) is None
    child.wait()
    assert lease.live_holder(files, no_pause) is None


def test_a_number_that_another_process_has_now_does_not_hold_it(files: Files) -> None:
    mine = this_process()
    assert mine.started is not None
    put(files, holder(processes=(Process(mine.pid, mine.started - 1),)))
    assert lease.live_holder(files, no_pause) is None


def test_the_jvm_of_a_killed_driver_is_given_time_to_end(files: Files) -> None:
    jvm = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    put(files, holder(processes=(Process(2**22 + 1, 1), process(jvm.pid))))
    waits: list[float] = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            jvm.kill()
            jvm.wait()

    assert lease.live_holder(files, pause) is None
    assert len(waits) == 3


def test_a_jvm_that_does_not_end_still_holds_it(files: Files) -> None:
    put(files, holder(processes=(Process(2**22 + 1, 1), this_process())))
    assert lease.live_holder(files, no_pause) is not None


ELSEWHERE = {"host": "elsewhere", "boot": "another boot"}


def test_another_host_holds_it_as_long_as_its_heart_beats(files: Files) -> None:
    who = holder(**ELSEWHERE)
    put(files, who)
    assert lease.live_holder(files, lambda _: put(files, replace(who, beat=who.beat + 1)))


def test_another_host_whose_heart_stands_still_does_not(files: Files) -> None:
    waited: list[float] = []
    put(files, holder(**ELSEWHERE))
    assert lease.live_holder(files, waited.append) is None
    assert sum(waited) > 2 * lease.BEAT_SECONDS


@pytest.mark.parametrize("off", [-11 * 60_000, -3_600_000, 3_600_000])
def test_another_hosts_clock_decides_nothing(files: Files, off: int) -> None:
    """Eleven minutes or an hour off: its beat is watched, and goes on."""
    who = holder(**ELSEWHERE, beat_ms=int(time.time() * 1000) + off)
    put(files, who)
    assert lease.live_holder(files, lambda _: put(files, replace(who, beat=who.beat + 1)))


def test_a_process_of_another_namespace_is_not_looked_for_here(files: Files) -> None:
    """Two containers of one host name and one volume: the same number is another process."""
    gone_here = (Process(2**22 + 1, 1),)
    who = holder(namespace="pid:[1]", processes=gone_here)
    put(files, who)
    assert lease.live_holder(files, lambda _: put(files, replace(who, beat=who.beat + 1)))


@pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace needs root")
def test_a_run_in_a_container_is_not_taken_over(files: Files, tmp_path: Path) -> None:
    """For real: a process in a PID namespace of its own, with this host's name."""
    code = (
        "import sys, time; from floodmark.engine.start import lease; "
        "from floodmark.storage.files import open_files; "
        "lease.BEAT_SECONDS = 0.2; held = lease.take(open_files(sys.argv[1]), 'sales', None); "
        "held.hold(lambda: True); print('held', flush=True); time.sleep(60)"
    )
    command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    child = subprocess.Popen(
        [*command, sys.executable, "-c", code, str(tmp_path / "ck")], stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        found = lease.read_holder(files)
        assert found is not None
        assert found.host == host_name()
        assert found.processes[0].pid == 1
        assert lease.live_holder(files, time.sleep) is not None
        with pytest.raises(InUse, match="is in use by pipeline sales"):
            lease.take(files, "sales", None)
    finally:
        child.kill()
        child.wait()
    assert lease.live_holder(files, no_pause) is None, "its beat stands still"


@pytest.mark.parametrize("pid", [1, 2**70, -1, 0])
def test_a_number_without_a_start_time_proves_nothing(files: Files, pid: int) -> None:
    """Process 1 always runs; a huge number fits no system call."""
    put(files, holder(processes=(Process(pid, None),)))
    waited: list[float] = []
    assert lease.live_holder(files, waited.append) is None
    assert sum(waited) > 2 * lease.BEAT_SECONDS


def test_a_lease_of_an_earlier_release_is_heeded(files: Files) -> None:
    value = json.loads(lease.render(holder()))
    for new in ("epoch", "chain", "boot", "namespace", "ended"):
        del value[new]
    files.write(lease.PATH, json.dumps(value).encode())

    def beat(_seconds: float) -> None:
        value["beat"] += 1
        files.write(lease.PATH, json.dumps(value).encode())

    assert lease.live_holder(files, beat) is not None
    assert lease.live_holder(files, no_pause) is None


def test_a_lease_is_taken_renewed_and_released(files: Files) -> None:
    held = lease.take(files, "sales", None, run="run-2")
    before = lease.read_holder(files)
    assert before is not None
    assert before.run == "run-2"
    assert lease.live_holder(files, no_pause) == before
    held.beat()
    after = lease.read_holder(files)
    assert after is not None
    assert after.beat == before.beat + 1
    held.release()
    assert lease.read_holder(files) is None
    assert not (Path(files.root) / lease.PATH).exists()


def test_a_lease_that_a_full_disk_keeps_does_not_hold_up_its_own_restart(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lease.take(files, "sales", None)

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(type(files), "write", no_room)
        full.setattr(type(files), "delete", no_room)
        first.release()
    assert lease.read_holder(files) is not None, "the storage took no change"

    assert lease.live_holder(files, no_pause) is None
    second = lease.take(files, "sales", None)
    assert second.epoch > first.epoch
    second.release()
    assert lease.read_holder(files) is None


def test_a_claim_of_a_start_that_found_no_room_for_its_lease_does_not_hold(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise CannotRead("_floodmark/lease.json: the storage answered with an error")

    with monkeypatch.context() as full:
        full.setattr(type(files), "write", no_room)
        with pytest.raises(CannotRead):
            lease.take(files, "sales", None)
    assert lease.read_holder(files) is not None, "the claim is there"
    assert lease.live_holder(files, no_pause) is None
    second = lease.take(files, "sales", None)
    assert second.epoch == 2
    second.release()


def test_the_number_only_grows(files: Files) -> None:
    for expected in (1, 2, 3):
        held = lease.take(files, "sales", None)
        assert held.epoch == expected
        held.release()
    assert files.level(EPOCHS).files == ("3.json",)


def test_a_paused_run_finds_that_it_was_superseded_also_after_the_other_has_ended(
    files: Files,
) -> None:
    paused = lease.take(files, "sales", None)
    other = lease.take(files, "sales", None, force=True)
    assert (paused.epoch, other.epoch, paused.chain) == (1, 2, other.chain)
    other.release()
    paused.beat()
    assert paused.lost
    with pytest.raises(Superseded, match="another run has taken over"):
        paused.require()
    paused.release()
    assert lease.read_holder(files) is None


def test_a_late_beat_of_a_superseded_run_takes_nothing_back(files: Files) -> None:
    paused = lease.take(files, "sales", None)
    late = files.read(lease.PATH)
    other = lease.take(files, "sales", None, force=True)
    files.write(lease.PATH, late)  # it was paused between its look and its write
    found = lease.read_holder(files)
    assert found is not None
    assert found.epoch == 2
    other.beat()
    assert not other.lost
    found = lease.read_holder(files)
    assert found is not None
    assert (found.epoch, found.beat) == (2, 1)
    paused.beat()
    assert paused.lost
    other.release()


def test_a_run_that_was_taken_over_learns_of_it_and_leaves_the_lease_alone(files: Files) -> None:
    held = lease.take(files, "sales", None, run="run-2")
    put(files, holder(run="run-3"))
    held.beat()
    assert held.lost
    held.release()
    found = lease.read_holder(files)
    assert found is not None
    assert found.run == "run-3"


def test_a_lost_lease_ends_the_query(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "BEAT_SECONDS", 0.05)
    ended = threading.Event()
    held = lease.take(files, "sales", None)
    held.hold(lambda: True, ended.set)
    assert not ended.wait(0.3)
    other = lease.take(files, "sales", None, force=True)
    assert ended.wait(300)
    other.release()


def test_a_lease_of_a_query_that_ended_in_this_process_does_not_hold(files: Files) -> None:
    held = lease.take(files, "sales", None)
    assert lease.live_holder(files, no_pause) is not None
    held.active = lambda: False
    assert lease.live_holder(files, no_pause) is None
    held.release()


def started_at_one_instant(place: str, options: dict[str, Any], starts: int) -> list[str]:
    """What each of several processes got: its number, or that it was refused."""
    code = (
        "import json, sys; from floodmark.engine.start.lease import take; "
        "from floodmark.errors import InUse; from floodmark.storage.files import open_files\n"
        "files = open_files(sys.argv[1], json.loads(sys.argv[2])); print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "try: print(take(files, 'sales', None).epoch, flush=True)\n"
        "except InUse: print('refused', flush=True)\n"
        "sys.stdin.readline()"
    )
    command = [sys.executable, "-c", code, place, json.dumps(options)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    children = [subprocess.Popen(command, **pipes) for _ in range(starts)]
    try:
        for child in children:
            assert child.stdout.readline() == "ready\n"
        for child in children:
            child.stdin.write("go\n")
            child.stdin.flush()
        return [child.stdout.readline().strip() for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_of_starts_at_one_instant_one_gets_the_checkpoint(tmp_path: Path) -> None:
    for number in range(3):
        got = started_at_one_instant(str(tmp_path / f"ck-{number}"), {}, 4)
        assert sorted(got) == ["1", "refused", "refused", "refused"]


@pytest.mark.services
def test_of_starts_at_one_instant_one_gets_the_checkpoint_on_s3(s3: S3Server) -> None:
    got = started_at_one_instant(s3.place("lease"), s3.storage_options, 3)
    assert sorted(got) == ["1", "refused", "refused"]


@pytest.mark.parametrize(
    "same",
    [
        ("/x/ck", "/x/ck/", "file:/x/ck", "file:///x/ck", "/x//ck", "/x/./ck"),
        ("s3://b/ck", "s3a://b/ck/", "s3n://b//ck", "S3://b/ck"),
        ("data/ck", "./data/ck/", str(Path("data/ck").absolute())),
    ],
)
def test_a_place_has_one_name(same: tuple[str, ...]) -> None:
    assert len({place_name(location) for location in same}) == 1


def test_a_process_without_a_known_start_is_told_by_its_number() -> None:
    assert is_running(Process(os.getpid(), None))
    assert not is_running(Process(2**22 + 1, None))
