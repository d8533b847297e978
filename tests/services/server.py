"""A server process of the tests: begun, waited for, ended, whatever happens between."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

READY_WITHIN = 300.0
ENDED_WITHIN = 60.0

LEASH = Path(__file__).with_name("leash.py")


class Server:
    """A folder of its own, one process, and ports of the loopback interface."""

    name = "server"
    ending = signal.SIGTERM

    def __init__(self) -> None:
        # Not pytest's folder: that one is closed to the user that PostgreSQL runs as.
        self.folder = Path(tempfile.mkdtemp(prefix=f"floodmark-{self.name}-"))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Any:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        """Asks first, then insists; only the process group that `launch` made."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(ENDED_WITHIN)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(ENDED_WITHIN)

    def launch(
        self, command: list[str], ready: Callable[[], bool], user: tuple[int, int] | None = None
    ) -> None:
        identity = f"{user[0]}:{user[1]}" if user else ""
        leash = [sys.executable, "-I", "-S", str(LEASH), str(int(self.ending)), identity]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*leash, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                # Ctrl-C is for pytest, which then ends the servers in order.
                start_new_session=True,
            )
        deadline = time.monotonic() + READY_WITHIN
        while not ready():
            if self._process.poll() is not None:
                raise RuntimeError(f"{self.name} ended as it began:\n{self.last_words()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} is not ready:\n{self.last_words()}")
            time.sleep(0.05)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def java(jars: tuple[Path, ...], *arguments: str) -> list[str]:
    """A small JVM that starts quickly: the tests share two cores with everything else."""
    options = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    class_path = os.pathsep.join(str(jar) for jar in jars)
    return ["java", *options, "-cp", class_path, *arguments]
