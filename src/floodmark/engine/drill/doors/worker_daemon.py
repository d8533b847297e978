"""Spark's Python workers in a drill: functions over rows write nowhere and connect to nobody.

Spark starts this module in the place of its own daemon (spark.python.daemon.module). Files are
refused by the write fence as well, where the kernel has one.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

from floodmark.engine.app.files import REFUSED, WRITES, absolute_path
from floodmark.engine.app.watch import is_users

_REFUSED = {*REFUSED, "socket.connect", "socket.sendto"}
# Asked before the hook is there: tempfile tries its folder by writing to it, under a lock.
_FREE = (f"{tempfile.gettempdir()}/", "/dev/")


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: what the user's own code does, and not Spark's."""
    if event == "open":
        path, _, flags = arguments
        if not (isinstance(flags, int) and flags & WRITES) or isinstance(path, int):
            return
        place = absolute_path(path) or ""
        if place.startswith(_FREE):
            return
    elif event not in _REFUSED:
        return
    if is_users(sys._getframe(1)):
        words = ", ".join(map(str, arguments[:2]))
        raise PermissionError(f"a drill does not carry this out: {event} {words}, in a function")


if __name__ == "__main__":
    from pyspark.daemon import manager

    sys.addaudithook(refuse)
    manager()
