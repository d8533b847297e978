"""Decodes serialized values of Scala and Java: lists, maps, numbers, times.

Scala 2.12 and 2.13 write collections in different ways; both give the same result.
"""

from __future__ import annotations

from typing import Any

from floodmark.dstreams.java_objects import JavaArray, JavaObject

_BOXES = frozenset(
    f"java.lang.{name}"
    for name in ("Integer", "Long", "Double", "Float", "Short", "Byte", "Boolean", "Character")
)
_ENDS = ("$SerializeEnd$", ".SerializeEnd$", ".ListSerializeEnd$")


def is_boxed(value: Any) -> bool:
    return isinstance(value, JavaObject) and value.name in _BOXES


def unboxed(value: Any) -> Any:
    return value.get("value") if is_boxed(value) else value


def text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def items(value: Any) -> list[Any]:
    """Return the items of a collection; an empty list if it is not a collection."""
    if isinstance(value, JavaArray):
        return list(value.items)
    if not isinstance(value, JavaObject):
        return []
    array = held_array(value)
    if array is not None:
        size = value.get("size0")
        held = list(array.items)
        return held[:size] if isinstance(size, int) and size >= 0 else held
    return [
        one
        for one in value.written
        if not isinstance(one, bytes) and not (isinstance(one, JavaObject) and _ends(one))
    ]


def held_array(value: JavaObject) -> JavaArray | None:
    """Return the array of a collection: `unsafeArray` in Scala's ArraySeq, `a` in Java's."""
    found = (value.get(name) for name in ("array", "unsafeArray", "a"))
    return next((one for one in found if isinstance(one, JavaArray)), None)


def _ends(value: JavaObject) -> bool:
    return value.name.endswith(_ENDS) or (
        # A Scala object is written as its class, of which it is the only instance.
        value.name == "scala.runtime.ModuleSerializationProxy"
        and str(getattr(value.get("moduleClass"), "name", "")).endswith("SerializeEnd$")
    )


def pairs(value: Any) -> list[tuple[Any, Any]]:
    """Return the pairs of a map: Scala 2.13 writes tuples, 2.12 keys and values in turn."""
    held = items(value)
    if all(isinstance(one, JavaObject) and one.name.startswith("scala.Tuple2") for one in held):
        return [(one.get("_1"), one.get("_2")) for one in held]
    return list(zip(held[::2], held[1::2], strict=False))


def option(value: Any) -> Any:
    """Return the value inside a Some; None for None."""
    if isinstance(value, JavaObject) and value.name == "scala.Some":
        held = value.fields.get("scala.Some", {})
        return held.get("value", held.get("x"))  # `x` before Scala 2.12.5
    return None


def millis(value: Any) -> int | None:
    """Return the milliseconds of Spark's Time or Duration, which hold one number."""
    if not isinstance(value, JavaObject):
        return None
    held = [one for fields in value.fields.values() for one in fields.values()]
    return held[0] if len(held) == 1 and type(held[0]) is int else None
