"""Where a flow of a declarative pipeline (`spark-pipelines`) keeps its checkpoints.

They lie in `<storage>/_checkpoints/<catalog>/<schema>/<table>/<flow>/<n>`. A start takes the
highest n; a full refresh makes n+1, which is empty, and leaves the others where they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from floodmark.checkpoint.layout import FLOW_CHECKPOINTS

# Spark reads the name as an Int; its minus sign it would take, and never writes one.
_NUMBER = re.compile(r"\d{1,10}")
_LARGEST = 2**31 - 1


class FlowStatus(Enum):
    CURRENT = "current"
    SUPERSEDED = "superseded"
    EMPTY = "empty"
    """The current one, without a batch: the flow begins with its first record."""


@dataclass(frozen=True)
class Flow:
    pipeline: str
    """Its name in the specification, or the storage's folder where that is all there is."""
    table: str
    """The table that the flow writes: catalog, schema and name."""
    flow: str
    """The flow's name."""
    status: FlowStatus
    """`current`: the next start takes it. `superseded`: a full refresh replaced it. `empty`:
    current, without a batch."""


@dataclass(frozen=True)
class FlowPlace:
    """What the path of one of a flow's checkpoints says."""

    storage: str
    folder: str
    """In which the numbered ones lie."""
    table: str
    flow: str
    number: int


def number_of(name: str) -> int | None:
    return int(name) if _NUMBER.fullmatch(name) and int(name) <= _LARGEST else None


def flow_place(path: str) -> FlowPlace | None:
    """None for a path that is no flow's."""
    parts = path.rstrip("/").split("/")
    if FLOW_CHECKPOINTS not in parts:
        return None
    at = len(parts) - 1 - parts[::-1].index(FLOW_CHECKPOINTS)
    *table, flow, name = ["", "", *parts[at + 1 :]]
    number, named = number_of(name), [part for part in table if part]
    if number is None or not named or not flow:
        return None
    storage, folder = "/".join(parts[:at]), "/".join(parts[:-1])
    return FlowPlace(storage, folder, ".".join(named), flow, number)


def flow_at(
    place: FlowPlace, names: Iterable[str], has_batches: bool, pipeline: str | None = None
) -> Flow:
    """`names` are those of the folders beside it, its own among them."""
    numbers = [number for name in names if (number := number_of(name)) is not None]
    status = FlowStatus.SUPERSEDED
    if place.number >= max(numbers, default=place.number):
        status = FlowStatus.CURRENT if has_batches else FlowStatus.EMPTY
    return Flow(pipeline or place.storage.rpartition("/")[2], place.table, place.flow, status)


def next_folder(place: FlowPlace, names: Iterable[str]) -> str:
    """Where the pipeline looks first after it is written."""
    numbers = [number for name in names if (number := number_of(name)) is not None]
    return f"{place.folder}/{max([place.number, *numbers]) + 1}"
