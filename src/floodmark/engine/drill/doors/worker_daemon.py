"""Guards Spark's Python workers in a drill: their functions neither write nor connect.

Spark starts this module instead of its own daemon (spark.python.daemon.module). The write fence
also refuses files, where the kernel has one.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

from floodmark.engine.app.effects.file_writes import REFUSED, WRITES, absolute_path
from floodmark.engine.app.script_calls import is_users

_REFUSED = {*REFUSED, "socket.connect", "socket.sendto"}
# Read before the hook is installed: tempfile tries its folder by writing to it, under a lock.
_FREE = (f"{tempfile.gettempdir()}/", "/dev/")


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse, as an audit hook, what the user's own code does; Spark's own code is free."""
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
