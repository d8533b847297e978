"""Makes standard output and error that never stop a stream.

With a reader that has gone (`2>&1 | head -1`), a full disk under a log or a pipe that nobody
reads, a print would raise an error or wait, in floodmark and in the pipeline. This output drops
what cannot be written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import sys
from collections.abc import Iterator
from typing import Any, TextIO

# A write of at most this size fits if select() says that the pipe accepts data.
_PIPE_BUF = 4096


@contextlib.contextmanager
def unbreakable_output() -> Iterator[None]:
    """Replace sys.stdout and sys.stderr during the `with`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _unbreakable(sys.stdout), _unbreakable(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _unbreakable(stream: TextIO) -> Any:
    try:
        descriptor = stream.fileno()
        stream.flush()
    except (OSError, ValueError):  # a stream without a file, as tests have it
        return stream
    return _Unbreakable(stream, descriptor)


class _Unbreakable:
    def __init__(self, stream: TextIO, descriptor: int) -> None:
        self._stream = stream
        self._descriptor = descriptor
        self._is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        data = text.encode(self._stream.encoding or "utf-8", errors="backslashreplace")
        try:
            for start in range(0, len(data), _PIPE_BUF):
                if self._is_pipe and not select.select([], [self._descriptor], [], 0)[1]:
                    break
                os.write(self._descriptor, data[start : start + _PIPE_BUF])
        except OSError as error:
            if error.errno == errno.EPIPE:
                self._silence()
        return len(text)

    def _silence(self) -> None:
        """Send further output to the null device, so that Python's own last flush succeeds."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._descriptor)
        os.close(nowhere)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        return
