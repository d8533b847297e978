"""`floodmark run` as a process of its own, for tests that kill it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

MAIN = "from floodmark.cli.main import main; main()"
PATIENCE_SECONDS = 480.0


def floodmark(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


class Driver:
    """Its JVM is in the same process group, so that a kill reaches both."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=cwd,
            start_new_session=True,
        )

    def until(self, done: Callable[[], bool]) -> None:
        limit = time.monotonic() + PATIENCE_SECONDS
        while not done():
            if self.process.poll() is not None or time.monotonic() > limit:
                self.kill()
                assert self.process.stdout is not None
                raise AssertionError("the driver did not get there:\n" + self.process.stdout.read())
            time.sleep(0.005)

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def terminate(self) -> tuple[int, str]:
        """SIGTERM to the driver alone; its exit status and all that it said."""
        self.process.send_signal(signal.SIGTERM)
        said, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, said
