"""Digests a pickled Python function that a plan holds, with its broadcast values."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from floodmark.engine.code.digests.python_code import function_digest
from floodmark.rules.restarts.difference_words import NOT_COMPARED


def python_digest(function: Any, by_name: bool = False) -> str:
    """Digest the JVM's PythonFunction; `by_name`: the query passes arguments by name."""
    from py4j.protocol import Py4JError

    try:
        command = _bytes(function.command())
        broadcast = _broadcast(function)
    except (Py4JError, TypeError, OSError):
        return f"{NOT_COMPARED}it cannot be read ({uuid.uuid4()})"  # never equal
    try:
        from pyspark import cloudpickle

        # This process pickled it a moment ago: it is the code that is about to run.
        with _at_hand(broadcast):
            value = cloudpickle.loads(command)  # nosec B301
    except Exception:
        return hashlib.sha256(b"".join([command, *broadcast.values()])).hexdigest()
    function = value[0] if isinstance(value, tuple) and value else value
    return function_digest(function, by_name)


def _bytes(command: Any) -> bytes:
    """Return the bytes in Scala's wrapper, whose field has another name in Scala 2.12 (Spark 3)."""
    from py4j.protocol import Py4JError

    if isinstance(command, (bytes, bytearray)):
        return bytes(command)
    try:
        return bytes(command.unsafeArray())
    except Py4JError:
        return bytes(command.array())


def _broadcast(function: Any) -> dict[int, bytes]:
    """Return digests of the broadcast values, by number: the pickle holds only the number."""
    found = function.broadcastVars()
    return {
        int(one.id()): hashlib.sha256(Path(str(one.value().path())).read_bytes()).digest()
        for one in (found.get(at) for at in range(found.size()))
    }


class _Broadcast:
    """Stands in for a broadcast variable; its digest identifies it, whatever its number."""

    def __init__(self, digest: bytes) -> None:
        self.digest = digest


@contextlib.contextmanager
def _at_hand(broadcast: dict[int, bytes]) -> Iterator[None]:
    """Put the values where PySpark looks for broadcast variables: a table of the workers."""
    try:
        module = importlib.import_module("pyspark.core.broadcast")
    except ImportError:  # before Spark 4.0
        module = importlib.import_module("pyspark.broadcast")
    table: dict[int, Any] = module._broadcastRegistry
    mine = {number: _Broadcast(digest) for number, digest in broadcast.items()}
    before = {number: table[number] for number in mine if number in table}
    table.update(mine)
    try:
        yield
    finally:
        for number in mine:
            table.pop(number, None)
        table.update(before)
