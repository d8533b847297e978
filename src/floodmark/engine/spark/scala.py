"""Reads objects of the JVM: Scala's collections as Python's, and fields without a getter."""

from __future__ import annotations

from typing import Any

from floodmark.errors import WrongUse


def sequence(items: Any) -> list[Any]:
    return [items.apply(index) for index in range(items.size())]


def scala_map(value: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    pairs = value.iterator()
    while pairs.hasNext():
        pair = pairs.next()
        found[str(pair._1()).lower()] = str(pair._2())
    return found


def jvm_field(owner: Any, name: str) -> Any:
    """Return a private field of a JVM object; the writer has no getters."""
    from py4j.protocol import Py4JJavaError

    kind = owner.getClass()
    while kind is not None:
        try:
            field = kind.getDeclaredField(name)
        except Py4JJavaError:  # NoSuchFieldException: it is the parent's
            kind = kind.getSuperclass()
            continue
        field.setAccessible(True)
        return field.get(owner)
    raise WrongUse(
        f"this Spark's {owner.getClass().getSimpleName()} has no {name}",
        "floodmark reads the writer's options before it starts the query.",
        "Tell the project which Spark release you use.",
    )
