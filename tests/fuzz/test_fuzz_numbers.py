"""Files whose names are enormous numbers: no verb counts up to one of them."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
from fuzz_commands import EVERY
from fuzz_places import CLOCK, GOLDEN

from floodmark.cli.main import run
from floodmark.connectors.files.file_log import compact_interval

Capture = pytest.CaptureFixture[str]
HUGE, PRIME = "999999999999999999", "999999999999999988"
"""One more than the second is a prime: a log that compacts then has no shorter interval."""
RENAMED = [
    ("4.1/in-flight-state", "offsets/0", f"offsets/{HUGE}"),
    ("4.1/in-flight-state", "commits/0", f"commits/{HUGE}"),
    ("4.2/files", "sources/0/11", f"sources/0/{HUGE}"),
    ("4.2/files", "sources/0/9.compact", f"sources/0/{PRIME}.compact"),
    ("4.2/files", "offsets/0", f"offsets/{HUGE}"),
    ("4.2/sales-hdfs", "state/0/0/1.delta", f"state/0/0/{HUGE}.delta"),
    ("4.2/sales-hdfs", "commits/2", f"commits/{HUGE}"),
    ("4.2/sales-rocksdb", "state/0/0/1.zip", f"state/0/0/{HUGE}.zip"),
]


@pytest.fixture(autouse=True)
def in_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("a command takes longer than ten seconds")

    monkeypatch.setattr("time.sleep", CLOCK.sleep)
    before = signal.signal(signal.SIGALRM, ring)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(("name", "old", "new"), RENAMED)
def test_huge_numbers_in_names(
    name: str, old: str, new: str, tmp_path: Path, capsys: Capture
) -> None:
    golden = GOLDEN / name / "checkpoint"
    shutil.copytree(golden, tmp_path / "good")
    run(["backup", str(tmp_path / "good"), str(tmp_path / "repo"), "--execute"])
    shutil.copytree(golden, tmp_path / "cp")
    (tmp_path / "cp" / old).rename(tmp_path / "cp" / new)
    places = {one: str(tmp_path / one) for one in ("cp", "new", "repo")}
    for command in sorted(set(EVERY)):
        if "{plan}" in command:
            continue
        arguments = [part.format(place=tmp_path, **places) for part in command.split(" ")]
        signal.alarm(10)
        status = run(arguments)
        signal.alarm(0)
        assert 0 <= status < 6, (command, capsys.readouterr())
        capsys.readouterr()


def test_the_interval_of_a_huge_compaction_is_not_searched_for() -> None:
    signal.alarm(10)
    assert compact_interval([f"{PRIME}.compact"]) == int(PRIME) + 1
    assert compact_interval(["29.compact"]) == 10
