"""A real driver: `floodmark run` of the application that the campaigns kill."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from floodmark.engine.drill.killing import driver
from floodmark.engine.drill.killing.driver import SMALL_JVM
from floodmark.storage.machine.process import family

FLOODMARK = str(Path(sys.executable).with_name("floodmark"))
APPLICATION = str(Path(__file__).with_name("chaos_app.py"))


class Driver(driver.Driver):
    def __init__(
        self,
        base: Path,
        settings: Mapping[str, str],
        conf: Mapping[str, str],
        *,
        available_now: bool,
        environment: Mapping[str, str],
        arguments: tuple[str, ...] = (),
        master: str = "local[2]",
        program: tuple[str, ...] = (FLOODMARK,),
    ) -> None:
        command = [*program, "run", APPLICATION, "--master", master]
        command += ["--spark-log", str(base / "spark.log")]
        command += ["--available-now"] if available_now else []
        command += arguments
        all_conf = {**SMALL_JVM, "spark.local.dir": str(base / "local"), **conf}
        for option, pairs in (("--set", settings), ("--conf", all_conf)):
            for name, value in pairs.items():
                command += [option, f"{name}={value}"]
        self._paused: tuple[int, ...] = ()
        super().__init__(command, base / "driver.log", folder=base, environment=environment)

    def ask_to_stop(self) -> None:
        """SIGTERM: it finishes its batch and ends."""
        os.kill(self.pid, signal.SIGTERM)

    def pause(self, jvm_alone: bool = False) -> None:
        """SIGSTOP to Python and its JVM, as a machine that stands still; or to the JVM alone."""
        self._paused = family(self.pid)[1 if jvm_alone else 0 :]
        for pid in self._paused:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        """In some order: the JVM may wake before Python, or after it."""
        for pid in self._paused:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
