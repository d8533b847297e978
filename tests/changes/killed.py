"""Runs `floodmark` in processes that the system kills with SIGKILL before their n-th change.

Reads requests from stdin, a JSON line each: {"at": N, "arguments": [...]}; answers with
{"status": …, "changes": …, "err": "…"}. Each runs in a process of its own, forked from
this one, so that Python's start is paid once. N = 0 kills nobody and counts the changes.

On a local disk the system's calls are counted, on S3 the requests that change something.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

from floodmark import api  # noqa: F401 - imported before the forks, for all of them
from floodmark.changes import apply  # noqa: F401
from floodmark.cli import main

LOCAL = ("replace", "link", "unlink", "mkdir", "rmdir")
S3 = ("_pipe_file", "_cp_file", "_rm_file")


class Count:
    def __init__(self, at: int) -> None:
        self.at = at
        self.changes = 0
        self._turn = threading.Lock()

    def step(self) -> None:
        with self._turn:
            self.changes += 1
            if self.changes == self.at:
                os.kill(os.getpid(), signal.SIGKILL)

    def call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.step()
            return original(*arguments, **named)

        return call

    def request(self, original: Callable[..., Any]) -> Callable[..., Any]:
        async def request(*arguments: Any, **named: Any) -> Any:
            self.step()
            return await original(*arguments, **named)

        return request


def counted(at: int, on_s3: bool) -> Count:
    count = Count(at)
    if on_s3:
        import s3fs

        for name in S3:
            setattr(s3fs.S3FileSystem, name, count.request(getattr(s3fs.S3FileSystem, name)))
    else:
        for name in LOCAL:
            setattr(os, name, count.call(getattr(os, name)))
    return count


def child(at: int, arguments: list[str], out: int, err: int) -> None:
    os.dup2(out, 1)
    os.dup2(err, 2)
    count = counted(at, any(argument.startswith("s3://") for argument in arguments))
    status = main.run(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(out, f"\n{count.changes}".encode())
    os._exit(status)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if pid == 0:
            child(request["at"], request["arguments"], out.fileno(), err.fileno())
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        out.seek(0)
        err.seek(0)
        last = out.read().decode(errors="replace").rpartition("\n")[2]
        changes = int(last) if status >= 0 and last.isdecimal() else 0
        return {"status": status, "changes": changes, "err": err.read().decode(errors="replace")}


if __name__ == "__main__":
    import contextlib

    with contextlib.suppress(ImportError):
        import s3fs  # noqa: F401
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
