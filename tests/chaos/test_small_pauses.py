"""Very many pauses of drivers without Spark, on a disk and on S3: leases and ledger alone.

Each time one is paused, two others start at one instant: one of them takes over, the other is
refused. The paused one goes on, and has to stop. Clocks are off by an hour to either side.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chaos.small_driver import FINISHED, IN_USE, ROWS, SUPERSEDED
from floodmark.storage.files import Files, open_files
from floodmark.storage.lease_files import claimed_epochs, read_holder

if TYPE_CHECKING:
    from services.postgres import PostgresServer
    from services.s3 import S3Server

SEED = os.environ.get("FLOODMARK_CHAOS_SEED", "2026")
PAUSES = int(os.environ.get("FLOODMARK_SMALL_PAUSES", "100"))
DRIVER = str(Path(__file__).with_name("small_driver.py"))
PATIENCE = 60.0


class SmallCampaign:
    def __init__(self, place: str, options: dict[str, Any], database: str) -> None:
        self.files: Files = open_files(place, options)
        self._words = [place, json.dumps(options), database]
        self._rng = random.Random(SEED)
        self.refused = 0
        self.endless = 10**9

    def start(self, batches: int) -> subprocess.Popen[bytes]:
        off = self._rng.choice([-3600, 0, 3600])
        return subprocess.Popen(
            [sys.executable, DRIVER, *self._words, str(batches), str(off)],
            cwd=Path(__file__).parents[1],
        )

    def epoch(self) -> int:
        return max(claimed_epochs(self.files), default=0)

    def commits(self) -> int:
        return len(self.files.level("commits").files)

    def until(self, done: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        limit = time.monotonic() + seconds
        while not done():
            if time.monotonic() > limit:
                return False
            time.sleep(0.02)
        return True

    def run(self, pauses: int) -> int:
        """How many batches there are in the end."""
        current = self.start(self.endless)
        running = [current]
        try:
            assert self.until(lambda: self.commits() > 0)
            for _ in range(pauses):
                current = self._pause(current, running)
            total = self.commits() + 3
            current.kill()
            current.wait()
            last = self.start(total)
            running.append(last)
            assert last.wait(PATIENCE) == FINISHED
        finally:
            for driver in running:
                driver.kill()
                driver.wait()
        return total

    def _pause(
        self, first: subprocess.Popen[bytes], running: list[subprocess.Popen[bytes]]
    ) -> subprocess.Popen[bytes]:
        time.sleep(self._rng.uniform(0, 0.4))
        first.send_signal(signal.SIGSTOP)
        epoch, commits = self.epoch(), self.commits()
        others = [self.start(self.endless), self.start(self.endless)]
        running += others
        assert self.until(lambda: self.epoch() > epoch), "nobody took over"
        assert self.until(lambda: any(one.poll() is not None for one in others))
        (loser,) = [one for one in others if one.poll() is not None]
        assert loser.returncode == IN_USE
        self.refused += 1
        (second,) = [one for one in others if one is not loser]
        # It may wait in the database for the row that the paused one holds.
        self.until(lambda: self.commits() > commits + 1, 1.0)
        first.send_signal(signal.SIGCONT)
        assert first.wait(PATIENCE) == SUPERSEDED
        went_on = self.until(lambda: self.commits() > commits + 1)
        assert went_on, f"the second stands at {self.commits()}: status {second.poll()}"
        assert second.poll() is None
        return second


def found_rows(database: str) -> Counter[tuple[int, int]]:
    import sqlalchemy

    engine = sqlalchemy.create_engine(database)
    with engine.connect() as connection:
        rows = connection.execute(sqlalchemy.text("SELECT batch, row FROM sink")).all()
    engine.dispose()
    return Counter((row[0], row[1]) for row in rows)


def campaign(kind: str, request: pytest.FixtureRequest, tmp_path: Path, pauses: int) -> str:
    import sqlalchemy

    postgres: PostgresServer = request.getfixturevalue("postgres")
    database = postgres.create_database("small")
    engine = sqlalchemy.create_engine(database)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE sink (batch BIGINT, row BIGINT)"))
    engine.dispose()
    place, options = str(tmp_path / "ck"), {}
    if kind == "s3":
        s3: S3Server = request.getfixturevalue("s3")
        place, options = s3.place("small"), s3.storage_options
    running = SmallCampaign(place, options, database)

    batches = running.run(pauses)

    expected = Counter((batch, row) for batch in range(batches) for row in range(ROWS))
    found = found_rows(database)
    assert found == expected, f"lost {expected - found}, twice {found - expected}"
    assert read_holder(running.files) is None, "the lease is free"
    assert running.refused == pauses
    return f"{kind}: {pauses} pauses, {running.refused} starts refused, {batches} batches, 0 lost"


@pytest.mark.services
@pytest.mark.parametrize(("kind", "pauses"), [("disk", 2), ("s3", 1)])
def test_a_few_pauses(
    kind: str, pauses: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    assert "0 lost" in campaign(kind, request, tmp_path, pauses)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", ["disk", "s3"])
def test_very_many_pauses(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = campaign(kind, request, tmp_path, PAUSES)
    with capsys.disabled():
        print(f"\nseed {SEED}, {words}")
