"""A real driver, `floodmark run` in a process group of its own, and its violent end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

FLOODMARK = str(Path(sys.executable).with_name("floodmark"))
APPLICATION = str(Path(__file__).with_name("chaos_app.py"))
# A JVM that starts quickly and stays small: it lives for seconds.
CONF = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "700m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    # More tasks than cores: while some have written their state, others have not.
    "spark.sql.shuffle.partitions": "3",
    # Batches of a few rows in a cold JVM: compiling code for them takes longer than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.stats.collect": "false",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "1000",
}
GONE_WITHIN = 30.0


class Driver:
    def __init__(
        self,
        base: Path,
        settings: Mapping[str, str],
        conf: Mapping[str, str],
        *,
        available_now: bool,
        environment: Mapping[str, str],
    ) -> None:
        command = [FLOODMARK, "run", APPLICATION, "--master", "local[2]"]
        command += ["--spark-log", str(base / "spark.log")]
        command += ["--available-now"] if available_now else []
        all_conf = {**CONF, "spark.local.dir": str(base / "local"), **conf}
        for option, pairs in (("--set", settings), ("--conf", all_conf)):
            for name, value in pairs.items():
                command += [option, f"{name}={value}"]
        self._log = base / "driver.log"
        self.began = time.time()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=base,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """Python and the JVM at once, with no chance to tidy up; returns when both are gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(GONE_WITHIN)
        deadline = time.monotonic() + GONE_WITHIN
        while _alive(self._process.pid):
            if time.monotonic() > deadline:
                raise RuntimeError(f"process group {self._process.pid} outlives SIGKILL")
            time.sleep(0.01)

    def ask_to_stop(self) -> None:
        """SIGTERM: it finishes its batch and ends."""
        self._process.terminate()

    def wait(self, seconds: float) -> int:
        return self._process.wait(seconds)

    def last_words(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]


def _alive(group: int) -> bool:
    """Whether the group has a process that is not just waiting to be reaped."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # After the name, which stands in brackets and may hold anything.
            state, _, member = stat.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(member) == group and state not in "ZX":
            return True
    return False
