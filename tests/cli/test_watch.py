"""`watch`: one look or many, in a terminal, in a pipe, as JSON, and of what goes away."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import floodmark
import samples
from floodmark.cli.main import run
from floodmark.cli.watch import plot

MAIN = "from floodmark.cli.main import main; main()"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A Kafka stream of 30 batches whose commits came one to seven seconds after their plans."""
    place = samples.write(tmp_path / "cp", samples.sales(30))
    for batch in range(30):
        planned = samples.time_of(batch) / 1000
        os.utime(place / "offsets" / str(batch), (planned, planned))
        if batch < 29:
            os.utime(place / "commits" / str(batch), (planned + 1 + batch % 7,) * 2)
    return place


def test_one_look(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", str(checkpoint), "--once"]) == 0
    shown = capsys.readouterr().out
    assert "in flight   batch 29" in shown
    assert "committed   batch 28" in shown
    assert "1 s last, 4 s median" in shown
    assert "17 records last" in shown
    assert "▁" in shown or "█" in shown
    assert "Kafka was not asked" in shown
    assert "Spark runs batch 29 again" in shown
    assert "\x1b" not in shown


def test_looks_as_json_are_a_line_each(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["watch", str(checkpoint), "--count", "2", "--interval", "0.05", "--json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["committed_batch"] == 28
    assert second["time_ms"] > first["time_ms"]
    assert first["pulse"]["health"] == "stalled"
    assert [one["duration_ms"] for one in first["batches"]][:3] == [1000, 2000, 3000]
    assert first["records"][1:3] == [17, 17]
    assert first["lag"]["sources"][0]["kind"] == "kafka"


def test_what_changes_between_looks_is_seen(checkpoint: Path) -> None:
    looks = floodmark.watch(str(checkpoint), interval=0.01, count=3)
    assert next(looks).in_flight_batch == 29
    samples.write(checkpoint, {"commits/29": samples.commit_entry()})
    assert next(looks).in_flight_batch is None
    shutil.rmtree(checkpoint)
    gone = next(looks)
    assert gone.problem is not None
    assert "no such" in gone.problem
    assert next(looks, None) is None


def test_progress_lines_tell_durations_and_rows(checkpoint: Path) -> None:
    line = {"batch": 28, "duration_ms": 1234, "rows": 77, "run_id": "r"}
    samples.write(checkpoint, {"_floodmark/progress.jsonl": json.dumps(line).encode() + b"\n"})
    look = next(floodmark.watch(str(checkpoint), once=True))
    assert look.batches[-2].duration_ms == 1234
    assert look.records[-2] == 77


def test_a_terminal_gets_a_live_screen_and_keeps_the_last_look(checkpoint: Path) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", MAIN, "watch", str(checkpoint), "--interval", "0.1"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, env=environment
    )
    os.close(follower)
    seen = b""
    deadline = time.monotonic() + 300
    try:
        while seen.count(b"Ctrl-C ends it.") < 3:
            assert time.monotonic() < deadline, seen
            if select.select([leader], [], [], 0.5)[0]:
                seen += os.read(leader, 65536)
        process.send_signal(2)
        deadline = time.monotonic() + 300
        # Whatever it has written is read, also after its end: then reading fails, or waits.
        while select.select([leader], [], [], 0.5 if process.poll() is not None else 5)[0]:
            assert time.monotonic() < deadline
            try:
                seen += os.read(leader, 65536)
            except OSError:
                break
        assert process.wait(300) == 0
    finally:
        process.kill()
        process.wait()
        os.close(leader)
    assert b"\x1b[?1049h" in seen  # a screen of its own
    after = seen.rpartition(b"\x1b[?1049l")[2]
    assert b"batch 29" in after
    assert b"Traceback" not in seen


def test_bars_grow_with_values_and_leave_gaps() -> None:
    assert plot([0, 7, 8, 15, None, 3]) == "▁▄▅█ ▂"
    assert plot([0, 0]) == "▁▁"
    assert plot([]) == plot([None]) == ""
    assert len(plot(range(1000))) == 40


def test_a_terminal_without_blocks_gets_plain_ones(checkpoint: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "watch", str(checkpoint), "--once"],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0
    assert b"\\u2581" not in done.stdout
    assert b"#" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--interval", "0"], 2),
        (["--count", "0"], 2),
        (["--once", "--count", "3"], 2),
        (["--timeout", "0"], 2),
        (["--source-kind", "9=kafka", "--once"], 2),
    ],
)
def test_wrong_use(checkpoint: Path, arguments: list[str], status: int) -> None:
    assert run(["watch", str(checkpoint), *arguments]) == status


def test_places_that_are_no_checkpoint(tmp_path: Path) -> None:
    assert run(["watch", str(tmp_path / "absent"), "--once"]) == 3
    dstreams = samples.write(tmp_path / "dstreams", {"checkpoint-1000": b"x"})
    assert run(["watch", str(dstreams), "--once"]) == 3


def test_a_new_checkpoint_and_one_with_odd_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = samples.write(tmp_path / "new", {"metadata": b'{"id":"x"}'})
    assert run(["watch", str(new), "--once"]) == 0
    assert "no batch yet" in capsys.readouterr().out
    tree = samples.logs(range(2), range(2), offset=lambda n: json.dumps({"\x1b[31m<b>": {"0": n}}))
    odd = samples.write(tmp_path / "odd", tree)
    assert run(["watch", str(odd), "--once"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_copy_has_commits_whose_time_is_not_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = Path(__file__).parents[1] / "golden/4.2/kafka/checkpoint"
    shutil.copytree(golden, tmp_path / "cp", copy_function=shutil.copyfile)
    assert run(["watch", str(tmp_path / "cp"), "--once"]) == 0
    told = capsys.readouterr().out
    assert "When batch 2 was committed is not known" in told
    assert "No batch was committed" not in told
