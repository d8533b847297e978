"""Iceberg for real: Spark 4.1 with Iceberg 1.12, a local catalog, tables read, killed and moved.

There is no Iceberg for the Spark that the other tests run on, so that an environment of its own
is made where it is missing: a long campaign. The quick tests have what this Spark once wrote:
tests/connectors/test_iceberg.py.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import floodmark
import other_spark

HERE = Path(__file__).parent
SPARK = "4.1.4"
LATEST = "TIMESTAMP '2100-01-01 00:00:00'"
LIMIT = 240
pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.timeout(1800)]


@dataclass
class Lake:
    folder: Path
    python: Path
    environment: dict[str, str]
    session: subprocess.Popen[str]
    rows: int = 0

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.python), *command],
            env=self.environment | more,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )

    def sql(self, *statements: str) -> list[list[dict[str, Any]]]:
        """The answers of one session that lives as long as the lake."""
        return [rows for rows in map(self._answer, statements) if rows]

    def _answer(self, statement: str) -> list[dict[str, Any]]:
        assert self.session.stdin is not None
        assert self.session.stdout is not None
        self.session.stdin.write(json.dumps(statement) + "\n")
        self.session.stdin.flush()
        for line in self.session.stdout:
            if line.startswith("answer "):
                rows: list[dict[str, Any]] = json.loads(line.removeprefix("answer "))
                return rows
        raise AssertionError(f"{statement}: the session has ended")

    def append(self, files: int, table: str = "lake.db.orders") -> str:
        first, self.rows = self.rows, self.rows + files * 10
        return f"append {table} {files} {first}"

    def expire(self, name: str) -> str:
        return (
            f"CALL lake.system.expire_snapshots(table => 'db.{name}', older_than => {LATEST}, "
            "retain_last => 1)"
        )

    def stream(self, which: str, cp: Path, **more: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(HERE / "streams.py"), STREAM=which, CP=str(cp), **more)

    def goes_on(self, which: str, cp: Path, **more: str) -> None:
        done = self.stream(which, cp, **more)
        assert done.returncode == 0, done.stderr[-3000:]

    def killed(self, which: str, cp: Path, batch: int) -> None:
        """SIGKILL while a batch is planned and not committed."""
        started = subprocess.Popen(
            [str(self.python), str(HERE / "streams.py")],
            env=self.environment | {"STREAM": which, "CP": str(cp)},
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        ends = time.monotonic() + LIMIT
        while not (cp / "offsets" / str(batch)).exists():
            assert time.monotonic() < ends
            assert started.poll() is None
            time.sleep(0.005)
        os.killpg(started.pid, signal.SIGKILL)
        started.wait(300)
        assert not (cp / "commits" / str(batch)).exists()

    def floodmark(self, *command: str, **more: str) -> str:
        """A verb that needs the Spark of this campaign."""
        done = self.run("-m", "floodmark", *command, **more)
        assert done.returncode == 0, done.stdout + done.stderr[-3000:]
        return done.stdout

    def table(self, name: str) -> str:
        return str(self.folder / "lake" / "db" / name)

    def totals(self) -> tuple[dict[str, int], dict[str, int]]:
        """What the stream has written, and what a batch query gives."""
        written, wanted = self.sql(
            "SELECT customer, total FROM lake.db.totals",
            "SELECT customer, sum(amount) total FROM lake.db.orders GROUP BY customer",
        )
        assert len(written) == len({row["customer"] for row in written})
        return by_customer(written), by_customer(wanted)

    def copies(self) -> tuple[list[int], list[int]]:
        written, wanted = self.sql(
            "SELECT amount FROM lake.db.copy ORDER BY amount",
            "SELECT amount FROM lake.db.orders ORDER BY amount",
        )
        return [row["amount"] for row in written], [row["amount"] for row in wanted]


def by_customer(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {row["customer"]: row["total"] for row in rows}


@pytest.fixture(scope="module")
def python() -> Path:
    return other_spark.python_of(SPARK)


@pytest.fixture
def lake(tmp_path: Path, python: Path) -> Iterator[Lake]:
    sys.path.append(str(other_spark.ROOT / "scripts"))
    from services import iceberg_connector

    jars = ",".join(map(str, iceberg_connector()))
    paths = other_spark.environment(
        tmp_path / "packages",
        LAKE=str(tmp_path / "lake"),
        ICEBERG_JARS=jars,
        PYSPARK_PYTHON=str(python),
        SPARK_LOCAL_IP="127.0.0.1",
    )
    paths.pop("SPARK_HOME", None)
    with (tmp_path / "lake.log").open("w") as log:
        session = subprocess.Popen(
            [str(python), str(HERE / "lake.py")],
            env=paths,
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    made = Lake(tmp_path, python, paths, session)
    try:
        for name in ("orders", "copy"):
            made.sql(f"CREATE TABLE lake.db.{name} (customer STRING, amount BIGINT) USING iceberg")
        yield made
    finally:
        assert session.stdin is not None
        session.stdin.close()
        session.wait(300)


def rules(cp: Path, **asked: Any) -> list[str]:
    return [finding.rule for finding in floodmark.doctor(str(cp), **asked)]


def test_a_stream_with_state(lake: Lake, tmp_path: Path) -> None:
    cp, moved, new = tmp_path / "cp", tmp_path / "moved", tmp_path / "new"
    lake.sql(
        "CREATE TABLE lake.db.totals (customer STRING, total BIGINT) USING iceberg",
        lake.append(2),
        lake.append(1),
    )
    orders, totals = lake.table("orders"), lake.table("totals")

    # Killed in a batch: Spark itself goes on.
    lake.killed("totals", cp, 1)
    assert floodmark.inspect(str(cp)).in_flight_batch == 1
    assert rules(cp, table=orders) == []
    lake.goes_on("totals", cp)
    written, wanted = lake.totals()
    assert written == wanted
    assert rules(cp, table=orders, sink=totals) == []

    # The snapshot in which it began is expired: no start with availableNow is possible.
    lake.sql(lake.expire("orders"), lake.append(2))
    [source] = floodmark.lag(str(cp), table=orders).sources
    assert (source.behind.records, source.behind.versions) == (20, 1)
    assert rules(cp, table=orders) == ["iceberg-start-expired"]
    failed = lake.stream("totals", cp)
    assert failed.returncode != 0
    assert "the snapshot was expired or removed" in failed.stderr

    # A new checkpoint has it right; so has the old one once it is repaired.
    floodmark.upgrade(str(cp), str(moved), execute=True, accept="maybe-running")
    assert rules(moved, table=orders) == []
    lake.goes_on("totals", moved)
    written, wanted = lake.totals()
    assert written == wanted
    floodmark.repair(str(cp), table=orders, execute=True, accept="maybe-running")
    assert rules(cp, table=orders) == []
    lake.goes_on("totals", cp)
    lake.goes_on("totals", cp)  # with nothing new
    written, wanted = lake.totals()
    assert written == wanted

    # Back, and the same records again: in complete mode nothing is there twice.
    last = floodmark.inspect(str(moved)).committed_batch
    assert last is not None
    floodmark.rewind(str(moved), to_batch=last - 1, execute=True, accept="maybe-running")
    lake.goes_on("totals", moved)
    written, wanted = lake.totals()
    assert written == wanted
    assert floodmark.inspect(str(moved)).committed_batch == last

    # New code, which Spark refuses the state of: migrated.
    lake.sql("ALTER TABLE lake.db.totals ADD COLUMN many BIGINT", lake.append(1))
    refused = lake.stream("counted", moved)
    assert "STATE_STORE" in refused.stderr
    streams = str(HERE / "streams.py")
    command = ("migrate", str(moved), str(new), "--app", streams, "--execute")
    lake.floodmark(*command, "--accept", "last-start-unknown", STREAM="counted", CP=str(moved))
    lake.goes_on("counted", new)
    written, wanted = lake.totals()
    assert written == wanted
    assert rules(new, table=orders, sink=totals) == []

    # What it stands in is expired; and another table at its place.
    lake.sql(lake.append(1), lake.append(1), lake.expire("orders"))
    assert rules(new, table=orders) == ["iceberg-snapshot-expired"]
    assert "expired or removed" in lake.stream("counted", new).stderr
    lake.sql(
        "DROP TABLE lake.db.orders PURGE",
        "CREATE TABLE lake.db.orders (customer STRING, amount BIGINT) USING iceberg",
        lake.append(1),
    )
    assert rules(new, table=orders) == ["iceberg-table-replaced"]
    assert lake.stream("counted", new).returncode != 0


def test_a_start_without_state_is_exact(lake: Lake, tmp_path: Path) -> None:
    cp, new = tmp_path / "cp", tmp_path / "new"
    lake.sql(lake.append(3))
    lake.killed("copy", cp, 2)
    floodmark.upgrade(
        str(cp), str(new), without_state=True, execute=True, accept=("maybe-running", "repeats")
    )
    # Batches 0 and 1 are committed, and each took a file: one is left.
    lake.goes_on("copy", new)
    assert floodmark.inspect(str(new)).committed_batch == 0
    written, wanted = lake.copies()
    assert set(written) == set(wanted)


def test_a_start_by_time_is_coarse(lake: Lake, tmp_path: Path) -> None:
    """It reads the snapshot that the stream stood in from its first file on, as `offsets` says."""
    cp, new = tmp_path / "cp", tmp_path / "new"
    lake.sql(lake.append(1), lake.append(2))
    lake.killed("copy", cp, 2)
    snapshot = floodmark.offsets(str(cp)).sources[0].offset["snapshot_id"]
    # Batch 1 has read one of the two files of its snapshot.
    [[row]] = lake.sql(
        "SELECT unix_millis(committed_at) ms FROM lake.db.orders.snapshots "
        f"WHERE snapshot_id = {snapshot}"
    )
    lake.sql("DELETE FROM lake.db.copy")
    lake.goes_on("copy", new, FROM_MS=str(row["ms"]))
    written, wanted = lake.copies()
    assert written == wanted[10:]


def test_iceberg_as_the_sink(lake: Lake, tmp_path: Path) -> None:
    cp, copy = tmp_path / "cp", lake.table("copy")
    lake.sql(lake.append(2), lake.append(1))
    lake.killed("copy", cp, 1)
    lake.goes_on("copy", cp)
    written, wanted = lake.copies()
    assert written == wanted
    last = floodmark.inspect(str(cp)).committed_batch
    assert last is not None

    # As if it had died before the commit: the sink has the batch, and skips it.
    for hidden in ("", "."):
        (cp / "commits" / f"{hidden}{last}{'.crc' if hidden else ''}").unlink(missing_ok=True)
    lake.goes_on("copy", cp)
    assert lake.copies() == (wanted, wanted)

    # Others have written since, and the snapshots of the query are expired: it is forgotten.
    lake.sql(
        "DELETE FROM lake.db.copy WHERE amount < 0",
        "INSERT INTO lake.db.copy VALUES ('0', -1)",
        lake.expire("copy"),
    )
    assert rules(cp, sink=copy) == ["iceberg-sink-forgot"]
    (cp / "commits" / str(last)).unlink()
    (cp / "commits" / f".{last}.crc").unlink(missing_ok=True)
    told = floodmark.upgrade(str(cp), str(tmp_path / "other")).plan.consequences
    assert any("Iceberg has forgotten a batch whose snapshot is" in one.words for one in told)
    lake.goes_on("copy", cp)
    written, wanted = lake.copies()
    assert len(written) > len(wanted) + 1  # what the plan has said


def test_once_iceberg(lake: Lake, tmp_path: Path) -> None:
    cp, copy = tmp_path / "cp", lake.table("copy")
    lake.sql(lake.append(2), lake.append(1))
    assert lake.stream("once", cp, DIES="1").returncode == -signal.SIGKILL
    assert floodmark.inspect(str(cp)).in_flight_batch == 1
    assert rules(cp, sink=copy) == []
    lake.goes_on("once", cp, INTO=copy)  # the same table by its path
    written, wanted = lake.copies()
    assert written == wanted
    assert rules(cp, sink=copy) == []
