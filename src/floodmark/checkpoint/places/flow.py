"""Finds where a flow of a declarative pipeline (`spark-pipelines`) keeps its checkpoints.

They lie in `<storage>/_checkpoints/<catalog>/<schema>/<table>/<flow>/<n>`. A start uses the highest
n. A full refresh creates n+1, which is empty, and leaves the others in place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from floodmark.checkpoint.layout import FLOW_CHECKPOINTS

# Spark reads the name as an Int. It accepts a minus sign, but never writes one.
_NUMBER = re.compile(r"\d{1,10}")
_LARGEST = 2**31 - 1


class FlowStatus(Enum):
    CURRENT = "current"
    SUPERSEDED = "superseded"
    EMPTY = "empty"
    """The current checkpoint has no batch: the flow begins with its first record."""


@dataclass(frozen=True)
class Flow:
    pipeline: str
    """The pipeline's name in the specification, else the name of the storage's folder."""
    table: str
    """The table that the flow writes: catalog, schema and name."""
    flow: str
    """The flow's name."""
    status: FlowStatus
    """`current`: the next start uses it. `superseded`: a full refresh replaced it. `empty`:
    the next start uses it, and it has no batch."""


@dataclass(frozen=True)
class FlowPlace:
    """What the path of a flow's checkpoint says."""

    storage: str
    folder: str
    """The folder of the numbered checkpoints."""
    table: str
    flow: str
    number: int


def number_of(name: str) -> int | None:
    return int(name) if _NUMBER.fullmatch(name) and int(name) <= _LARGEST else None


def flow_place(path: str) -> FlowPlace | None:
    """Return what a path says about its flow; None if it is not a flow's checkpoint."""
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
    """Return the flow at a place. `names` are all folders there, with the checkpoint's own."""
    numbers = [number for name in names if (number := number_of(name)) is not None]
    status = FlowStatus.SUPERSEDED
    if place.number >= max(numbers, default=place.number):
        status = FlowStatus.CURRENT if has_batches else FlowStatus.EMPTY
    return Flow(pipeline or place.storage.rpartition("/")[2], place.table, place.flow, status)


def next_folder(place: FlowPlace, names: Iterable[str]) -> str:
    """Return the folder of the flow's next checkpoint: the pipeline looks there first."""
    numbers = [number for name in names if (number := number_of(name)) is not None]
    return f"{place.folder}/{max([place.number, *numbers]) + 1}"
