"""Starts a driver process in a process group of its own, and kills it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from floodmark.checkpoint.conf_keys import DRIVER_JAVA_OPTIONS, SHUFFLE_PARTITIONS, UI_ENABLED
from floodmark.engine.spark.jvm import NOT_COMPILED
from floodmark.storage.machine.process import family, is_running, kill_family, process

LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
# These settings make a JVM that starts quickly and stays small, as it lives for seconds.
SMALL_JVM = {
    DRIVER_JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "700m",
    **LOOPBACK,
    UI_ENABLED: "false",
    # There are more tasks than cores: while some have written their state, others have not.
    SHUFFLE_PARTITIONS: "3",
    **NOT_COMPILED,
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.stats.collect": "false",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "1000",
}
_GONE_WITHIN = 120.0
_LAST_WORDS = 3000
_Self = TypeVar("_Self", bound="Driver")


class Driver:
    """Starts a driver at once, and kills it at the end of the `with` if it still runs."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._log = log
        self.began = time.time()
        with log.open("ab") as out:
            self._process = subprocess.Popen(  # nosec B603 - a list, and no shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=folder,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Return the exit status; None while the process runs."""
        return self._process.poll()

    def kill(self) -> None:
        """Kill Python and the JVM at once, without cleanup; return when both have ended."""
        members = [process(pid) for pid in family(self._process.pid)]
        kill_family(self._process.pid)
        self._process.wait(_GONE_WITHIN)
        deadline = time.monotonic() + _GONE_WITHIN
        while any(one.started is not None and is_running(one) for one in members):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the driver {self._process.pid} outlives SIGKILL")
            time.sleep(0.01)

    def wait(self, seconds: float) -> int:
        return self._process.wait(seconds)

    def last_words(self) -> str:
        return self._log.read_text(errors="replace")[-_LAST_WORDS:]
