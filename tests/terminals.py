"""What a command prints where it has a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Sequence
from pathlib import Path


def on_a_terminal(
    command: Sequence[str], cwd: Path | None = None, columns: int = 80, **environment: str
) -> str:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    seen = {**os.environ, "TERM": "xterm", **environment}
    if "COLUMNS" not in environment:
        seen.pop("COLUMNS", None)
    with subprocess.Popen(
        command,
        cwd=cwd,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=seen,
    ) as process:
        os.close(theirs)
        text = b""
        while part := _read(ours):
            text += part
        process.wait(timeout=300)
    os.close(ours)
    return text.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the terminal's end, on Linux
        return b""
