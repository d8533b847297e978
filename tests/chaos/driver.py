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

from floodmark.storage.process import family, is_running, kill_family, process

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
GONE_WITHIN = 120.0


class Driver:
    def __init__(
        self,
        base: Path,
        settings: Mapping[str, str],
        conf: Mapping[str, str],
        *,
        available_now: bool,
        environment: Mapping[str, str],
        arguments: tuple[str, ...] = (),
    ) -> None:
        command = [FLOODMARK, "run", APPLICATION, "--master", "local[2]"]
        command += ["--spark-log", str(base / "spark.log")]
        command += ["--available-now"] if available_now else []
        command += arguments
        all_conf = {**CONF, "spark.local.dir": str(base / "local"), **conf}
        for option, pairs in (("--set", settings), ("--conf", all_conf)):
            for name, value in pairs.items():
                command += [option, f"{name}={value}"]
        self._log = base / "driver.log"
        self._paused: tuple[int, ...] = ()
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
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """Python and the JVM at once, with no chance to tidy up; returns when both are gone."""
        members = [process(pid) for pid in family(self._process.pid)]
        kill_family(self._process.pid)
        self._process.wait(GONE_WITHIN)
        deadline = time.monotonic() + GONE_WITHIN
        while any(one.started is not None and is_running(one) for one in members):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the driver {self._process.pid} outlives SIGKILL")
            time.sleep(0.01)

    def pause(self, jvm_alone: bool = False) -> None:
        """SIGSTOP to Python and its JVM, as a machine that stands still; or to the JVM alone."""
        self._paused = family(self._process.pid)[1 if jvm_alone else 0 :]
        for pid in self._paused:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        """In some order: the JVM may wake before Python, or after it."""
        for pid in self._paused:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def ask_to_stop(self) -> None:
        """SIGTERM: it finishes its batch and ends."""
        self._process.terminate()

    def wait(self, seconds: float) -> int:
        return self._process.wait(seconds)

    def last_words(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]
