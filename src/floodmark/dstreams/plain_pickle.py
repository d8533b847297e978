"""Unpickles plain data and nothing else: numbers, text, bytes, dates, and collections of them.

A pickle is a program: it names functions of any module and calls them. This reader knows the
operations that build plain data, and the few types below. It refuses any other pickle before it
calls anything. It uses Python's own unpickler in Python, whose memory follows the pickle's length;
the unpickler in C reserves memory for any index that a pickle names.
"""

from __future__ import annotations

import io
import pickle  # nosec B403: only the restricted reader below uses it
from functools import lru_cache
from typing import Any, ClassVar

from floodmark.errors import CannotRead, MalformedFile, Refused

# These call Python code, build objects of any class, or need another program to resolve them.
_REFUSED = (
    pickle.BUILD,
    pickle.INST,
    pickle.OBJ,
    pickle.NEWOBJ,
    pickle.NEWOBJ_EX,
    pickle.PERSID,
    pickle.BINPERSID,
    pickle.EXT1,
    pickle.EXT2,
    pickle.EXT4,
    pickle.BYTEARRAY8,  # makes room for the size it claims
    pickle.NEXT_BUFFER,
    pickle.READONLY_BUFFER,
)
_BROKEN = (
    *(pickle.UnpicklingError, EOFError, KeyError, IndexError, ValueError, TypeError),
    *(AttributeError, OverflowError, ArithmeticError, UnicodeError, AssertionError, MemoryError),
)


class NotPlain(Refused):
    """Raised for a pickle of anything other than plain data."""


@lru_cache(maxsize=1)
def _types() -> dict[tuple[str, str], Any]:
    import datetime
    import decimal

    found = {
        ("datetime", name): getattr(datetime, name)
        for name in ("date", "datetime", "time", "timedelta", "timezone")
    }
    found["decimal", "Decimal"] = decimal.Decimal
    for module in ("builtins", "__builtin__"):  # the second is Python 2's, and of protocol 2
        found |= {(module, one.__name__): one for one in (set, frozenset, complex)}
    # Protocol 2 has no bytes: it writes text that must be encoded as latin1.
    found["_codecs", "encode"] = _latin1
    return found


def _latin1(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise not_plain(f"text encoded as {encoding!r}")
    return text.encode("latin1")


def plain_loads(data: bytes) -> Any:
    """Return the value of a plain pickle; raise `NotPlain` for others, `MalformedFile` for
    damage.
    """
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except _BROKEN as error:
        raise MalformedFile(
            "a pickled batch of the state is damaged", f"{type(error).__name__}: {error}"
        ) from None


class _PlainUnpickler(pickle._Unpickler):
    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    def find_class(self, module: str, name: str) -> Any:
        found = _types().get((module, name))
        if found is None:
            raise not_plain(f"{module}.{name}")
        return found


def _refuse(operation: bytes) -> Any:
    def refused(_: Any) -> None:
        raise not_plain(f"the operation {operation!r}")

    return refused


for _operation in _REFUSED:
    _PlainUnpickler.dispatch[_operation[0]] = _refuse(_operation)


def not_plain(what: str) -> NotPlain:
    return NotPlain(
        f"the state is not plain data: it needs {what}",
        "Unpickling it would run code that the pickle chooses. floodmark reads numbers, text, "
        "tuples, lists, dicts, dates and decimals without it.",
        "If you trust the writer of this folder, give --trust.",
    )


def trusting_loads(data: bytes) -> Any:
    """Return the value of any pickle. Its code runs: only for a folder that the user trusts."""
    try:
        return pickle.loads(data)  # nosec B301: the user has said --trust
    except Exception as error:
        raise CannotRead(
            "a pickled batch of the state cannot be unpickled",
            f"{type(error).__name__}: {error}",
            "Python must be able to import its classes: put the application's folder on "
            "PYTHONPATH.",
        ) from None
