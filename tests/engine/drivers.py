"""`floodmark run` as a process of its own, for tests that kill it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from floodmark.storage.machine.process import family, is_running, kill_family, process

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
    """Leads a process group; its JVM has one of its own, and dies with it in a kill."""

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
            kill_family(self.process.pid)
        self.process.wait()

    def jvm(self) -> int:
        """Its process number, once it runs."""
        found = [pid for pid in family(self.process.pid)[1:] if _program(pid) == "java"]
        assert found, "the driver has no JVM"
        return found[0]

    def ended(self) -> tuple[int, str]:
        """Waits; its exit status and all that it said."""
        said, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, said

    def terminate(self) -> tuple[int, str]:
        """SIGTERM to the driver alone; its exit status and all that it said."""
        self.process.send_signal(signal.SIGTERM)
        said, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, said


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def gone_within(pid: int, seconds: float) -> bool:
    """Whether the process ends in time; one that only waits to be reaped has ended."""
    limit = time.monotonic() + seconds
    while is_running(process(pid)):
        if time.monotonic() > limit:
            return False
        time.sleep(0.05)
    return True


def begun(place: Path, batch: int) -> bool:
    """An application that marks its batches in a file `begun` has come to this one."""
    marks = place / "begun"
    return marks.exists() and str(batch) in marks.read_text().split()


def logged(place: Path, log: str) -> list[int]:
    """The batches in offsets/ or commits/ of the checkpoint `ck`."""
    return sorted(int(path.name) for path in (place / "ck" / log).glob("[0-9]*"))
