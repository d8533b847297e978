"""Scala's collections as Python's."""

from __future__ import annotations

from typing import Any


def sequence(items: Any) -> list[Any]:
    return [items.apply(index) for index in range(items.size())]


def scala_map(value: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    pairs = value.iterator()
    while pairs.hasNext():
        pair = pairs.next()
        found[str(pair._1()).lower()] = str(pair._2())
    return found
