"""Runs the steps of the demonstration: make files, run, kill during a batch, run again, compare.

The events are real: the driver is another process and gets SIGKILL. The story only watches the
checkpoint and reports what it sees.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

from floodmark.connectors.files.input_files import input_files
from floodmark.connectors.files.live import read_source_log
from floodmark.engine.demo.orders import count_orders, write_orders
from floodmark.errors import StoppedMidway, WrongUse
from floodmark.screen import ShownByFields
from floodmark.storage.files import open_files
from floodmark.storage.load import load, load_logs
from floodmark.storage.machine.process import kill_family

MARK = ".floodmark-demo"
FIRST_FILES = range(8)
MORE_FILES = range(8, 12)
# Two files a batch: the driver dies in batch 2, the third of the first four.
VICTIM = 2
_RUN = "from floodmark.cli.main import main; main()"
_PATIENCE_SECONDS = 300.0
_TRIES = 3


@dataclass(frozen=True)
class StoryBatch:
    batch: int
    """The number of the batch."""
    planned_ms: int
    """The time when it was planned."""
    committed_ms: int
    """The time when it was committed."""
    rows: int
    """The number of orders that it read."""
    run: int
    """The start of the driver that finished it."""
    run_again: bool
    """True where it was in flight when the driver was killed, and ran again."""


@dataclass(frozen=True, repr=False)
class Story(ShownByFields):
    """The result of the demonstration."""

    folder: str
    """The folder of the demonstration."""
    checkpoint: str
    """The location of its checkpoint."""
    killed_in_batch: int
    """The batch in which the driver was killed."""
    batches: tuple[StoryBatch, ...]
    """All batches that ran."""
    orders: int
    """The number of orders that the stream read."""
    equal: bool
    """Whether the stream's totals equal those of a batch query over the same files."""
    customers: int
    """The number of customers with a total."""
    batch_query_total: str
    """The sum that the batch query found."""
    stream_total: str
    """The sum that the stream found."""
    differ: tuple[str, ...]
    """The first customers whose totals differ."""
    seconds: float
    """The duration of the demonstration."""


Tell = Callable[[str], Any]
"""Gets a plain sentence for each event."""


def prepare_folder(folder: Path) -> None:
    """Make the folder; replace an earlier demonstration, refuse any other content."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise WrongUse(
            f"{folder} is not empty, and it is not an earlier demonstration",
            do="Choose another folder with --folder.",
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).write_text("made by floodmark demo\n")
    application = resources("floodmark.engine.demo").joinpath("application.py")
    # The engine may not import the package's public names, which are above it.
    code = application.read_text(encoding="utf-8").replace(
        "floodmark.engine.pipelines.decorator", "floodmark"
    )
    (folder / "sales.py").write_text(code, encoding="utf-8")


def tell_story(folder: Path, tell: Tell) -> Story:
    began = time.monotonic()
    prepare_folder(folder)
    orders = write_orders(folder / "orders", FIRST_FILES)
    tell(f"{len(FIRST_FILES)} sales files, {orders:,} orders, in {folder}/orders")
    checkpoint = folder / "checkpoints" / "sales"
    _killed_run(folder, checkpoint, tell)
    with _Driver(folder) as driver:
        tell(f"the driver starts again (process {driver.process.pid})")
        driver.watch(checkpoint, VICTIM + 1, tell)
        orders += write_orders(folder / "orders", MORE_FILES)
        tell(f"{len(MORE_FILES)} more sales files arrive while it runs")
        # Count files, not batches: a file that is a moment late makes one more batch.
        driver.watch_files(checkpoint, len(FIRST_FILES) + len(MORE_FILES), VICTIM + 2, tell)
        driver.process.send_signal(signal.SIGTERM)
        status = driver.process.wait(_PATIENCE_SECONDS)
        tell(f"SIGTERM: the driver stops between two batches, exit status {status}")
    tell("one batch query over all the files, to compare")
    verdict = _judge(folder)
    return Story(
        str(folder),
        str(checkpoint),
        VICTIM,
        timeline(checkpoint),
        orders,
        bool(verdict["equal"]),
        int(verdict["customers"]),
        verdict["batch_query"],
        verdict["stream"],
        tuple(verdict["differ"]),
        round(time.monotonic() - began, 1),
    )


def _killed_run(folder: Path, checkpoint: Path, tell: Tell) -> None:
    for _ in range(_TRIES):
        if _kill_in_the_middle(folder, checkpoint, tell):
            break
        tell(f"batch {VICTIM} was committed before the kill: once more, from the beginning")
        shutil.rmtree(checkpoint)
    else:
        raise StoppedMidway(
            f"batch {VICTIM} was committed before the kill, {_TRIES} times",
            "This machine is too fast for the demonstration.",
            "Run it again.",
        )
    tell(f"SIGKILL: offsets/{VICTIM} is written, commits/{VICTIM} is not. The driver is dead")
    found = load(open_files(str(checkpoint)))
    tell(f"the checkpoint says: batch {found.in_flight_batch} is in flight, run it again")


def _kill_in_the_middle(folder: Path, checkpoint: Path, tell: Tell) -> bool:
    offset, commit = checkpoint / "offsets" / str(VICTIM), checkpoint / "commits" / str(VICTIM)
    with _Driver(folder) as driver:
        tell(f"the driver starts (process {driver.process.pid})")
        driver.watch(checkpoint, VICTIM - 1, tell)
        driver.until(offset.exists)
        # The JVM dies with its Python, as on a machine that fails.
        kill_family(driver.process.pid)
        driver.process.wait()
    return not commit.exists()


class _Driver:
    """Runs `floodmark run` as a process in a group of its own."""

    def __init__(self, folder: Path) -> None:
        self._log = (folder / "driver.log").open("ab")
        command = ["run", str(folder / "sales.py"), "--master", "local[2]", "--trigger", "500ms"]
        self.process = subprocess.Popen(  # nosec B603 # our own command, without a shell
            [sys.executable, "-c", _RUN, *command],
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def __enter__(self) -> _Driver:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            kill_family(self.process.pid)
            self.process.wait()
        self._log.close()

    def until(self, done: Callable[[], bool]) -> None:
        limit = time.monotonic() + _PATIENCE_SECONDS
        while not done():
            if self.process.poll() is not None or time.monotonic() > limit:
                said = Path(self._log.name).read_text(encoding="utf-8").strip().splitlines()
                raise StoppedMidway(
                    "the demonstration's driver does not make progress",
                    said[-1] if said else "It printed nothing.",
                    f"Its whole output is in {self._log.name}.",
                )
            time.sleep(0.002)

    def watch(self, checkpoint: Path, last: int, tell: Tell) -> None:
        """Report each batch up to the last when it is committed."""
        commits = checkpoint / "commits"
        for batch in range(last + 1):
            if not (commits / str(batch)).exists():
                self.until((commits / str(batch)).exists)
                tell(f"batch {batch} committed")

    def watch_files(self, checkpoint: Path, files: int, batch: int, tell: Tell) -> None:
        """Report each batch from one on, until committed batches have this number of files."""
        while files_committed(checkpoint) < files:
            self.until((checkpoint / "commits" / str(batch)).exists)
            tell(f"batch {batch} committed")
            batch += 1


def files_committed(checkpoint: Path) -> int:
    """Return how many input files the committed batches have read."""
    place = open_files(str(checkpoint))
    found = load_logs(place)
    taken = input_files(found, {"0": read_source_log(place, found, "0")})
    return sum(file.batch in found.commit_ids for file in taken)


def timeline(checkpoint: Path) -> tuple[StoryBatch, ...]:
    """Return the batches from the checkpoint: a killed driver may not report a finished batch."""
    place = open_files(str(checkpoint))
    found = load_logs(place)
    rows: Counter[int] = Counter()
    for file in input_files(found, {"0": read_source_log(place, found, "0")}):
        if file.batch is not None:
            rows[file.batch] += count_orders(file.path)
    return tuple(
        StoryBatch(
            batch,
            _planned_ms(found, batch),
            (checkpoint / "commits" / str(batch)).stat().st_mtime_ns // 1_000_000,
            rows[batch],
            1 if batch < VICTIM else 2,
            batch == VICTIM,
        )
        for batch in found.commit_ids
    )


def _planned_ms(checkpoint: Any, batch: int) -> int:
    entry = checkpoint.offsets[batch]
    return int(entry.metadata.batch_timestamp_ms)


def _judge(folder: Path) -> dict[str, Any]:
    answer = subprocess.run(  # nosec B603 # our own command, without a shell
        [sys.executable, "-m", "floodmark.engine.demo.oracle", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        lines = answer.stderr.strip().splitlines()
        raise StoppedMidway("the batch query failed", lines[-1] if lines else "")
    verdict: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return verdict
