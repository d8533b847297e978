"""Copies real data into the scratch folder, in a process outside the write fence.

Links lead out of the fence, so the run itself cannot make them. The process begins before the
fence and before any of the user's code, and ends with the run.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

from floodmark.errors import FloodmarkError, NoAnswer

Deeds = Mapping[str, Callable[..., Any]]


class Outside:
    """Calls functions of `deeds` in that process; arguments and results are JSON."""

    def __init__(self, deeds: Deeds) -> None:
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            ours.close()
            try:
                _serve(theirs, deeds)
            finally:
                os._exit(0)
        theirs.close()
        self._lines = ours.makefile("rw", encoding="utf-8")

    def __call__(self, name: str, *given: Any) -> Any:
        print(json.dumps([name, *given]), file=self._lines, flush=True)
        line = self._lines.readline()
        if not line:
            raise NoAnswer("the process that copies the checkpoint and the sinks has died")
        found, error = json.loads(line)
        if error is not None:
            raise NoAnswer(*error)
        return found


def _serve(asked: socket.socket, deeds: Deeds) -> None:
    lines = asked.makefile("rw", encoding="utf-8")
    for line in lines:
        name, *given = json.loads(line)
        found, error = None, None
        try:
            found = deeds[name](*given)
        except FloodmarkError as raised:
            error = [raised.what, raised.why, raised.do]
        except OSError as raised:
            error = [f"{name} cannot be copied: {raised}", "", ""]
        print(json.dumps([found, error]), file=lines, flush=True)
