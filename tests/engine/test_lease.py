"""Who uses a checkpoint: a killed run never blocks the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from floodmark.engine import lease
from floodmark.storage.files import Files, open_files
from floodmark.storage.holder import parse
from floodmark.storage.process import Process, host_name, is_running, process, this_process


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return open_files(str(tmp_path / "ck"))


def holder(**changes: object) -> lease.Holder:
    now = int(time.time() * 1000)
    made = lease.Holder("run-1", "sales", host_name(), (this_process(),), 3, now)
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


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"run": 1}', b'{"processes": 7}'])
def test_an_unreadable_lease_holds_nothing(files: Files, data: bytes) -> None:
    files.write(lease.PATH, data)
    assert lease.live_holder(files) is None


def test_a_living_process_of_this_machine_holds_it(files: Files) -> None:
    put(files, holder())
    found = lease.live_holder(files, no_pause)
    assert found is not None
    assert str(os.getpid()) in found.words


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


def test_another_host_holds_it_as_long_as_its_heart_beats(files: Files) -> None:
    who = holder(host="elsewhere")
    put(files, who)
    assert lease.live_holder(files, lambda _: put(files, replace(who, beat=who.beat + 1)))


def test_another_host_whose_heart_stands_still_does_not(files: Files) -> None:
    waited: list[float] = []
    put(files, holder(host="elsewhere"))
    assert lease.live_holder(files, waited.append) is None
    assert sum(waited) > 2 * lease.BEAT_SECONDS


def test_a_beat_of_long_ago_is_not_waited_for(files: Files) -> None:
    waited: list[float] = []
    put(files, holder(host="elsewhere", beat_ms=1))
    assert lease.live_holder(files, waited.append) is None
    assert waited == []


def test_a_lease_is_taken_renewed_and_released(files: Files) -> None:
    held = lease.take(files, "run-2", "sales", None)
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


def test_a_run_that_was_taken_over_learns_of_it_and_leaves_the_lease_alone(files: Files) -> None:
    held = lease.take(files, "run-2", "sales", None)
    put(files, holder(run="run-3"))
    held.beat()
    assert held.lost
    held.release()
    found = lease.read_holder(files)
    assert found is not None
    assert found.run == "run-3"


def test_a_lease_of_a_query_that_ended_in_this_process_does_not_hold(files: Files) -> None:
    held = lease.take(files, "run-4", "sales", None)
    assert lease.live_holder(files, no_pause) is not None
    held.active = lambda: False
    assert lease.live_holder(files, no_pause) is None
    held.release()


def test_a_process_without_a_known_start_is_told_by_its_number() -> None:
    assert is_running(Process(os.getpid(), None))
    assert not is_running(Process(2**22 + 1, None))
