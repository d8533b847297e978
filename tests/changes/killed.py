"""Runs `floodmark` and kills this very process with SIGKILL before its n-th change of storage.

python killed.py N ARGUMENTS...      N = 0 only counts, and prints the number

On a local disk the system's calls are counted, on S3 the requests that change something.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

AT = int(sys.argv[1])
LOCAL = ("replace", "link", "unlink", "mkdir", "rmdir")
S3 = ("_pipe_file", "_cp_file", "_rm_file")
count = 0
turn = threading.Lock()


def step() -> None:
    global count
    with turn:
        count += 1
        if count == AT:
            os.kill(os.getpid(), signal.SIGKILL)


def counted(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        step()
        return original(*arguments, **named)

    return call


def counted_request(original: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*arguments: Any, **named: Any) -> Any:
        step()
        return await original(*arguments, **named)

    return call


if any(argument.startswith("s3://") for argument in sys.argv):
    import s3fs

    for name in S3:
        setattr(s3fs.S3FileSystem, name, counted_request(getattr(s3fs.S3FileSystem, name)))
else:
    for name in LOCAL:
        setattr(os, name, counted(getattr(os, name)))

from floodmark.cli.main import run  # noqa: E402

status = run(sys.argv[2:])
if AT == 0:
    print(count)
sys.exit(status)
