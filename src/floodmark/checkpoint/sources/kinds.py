"""Which kind of source wrote an offset, told by the offset's form. Pure.

Spark keeps no source's name beside its offset. So the kind is told by the offset's form, by the
spaces in its text and, for a bare number, by what the source left in `sources/`. The forms are
those that each connector's own code writes.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from functools import lru_cache
from typing import Any


class SourceKind(str, Enum):
    KAFKA = "kafka"
    DELTA = "delta"
    FILE = "file"
    RATE = "rate"
    SOCKET = "socket"
    MEMORY = "memory"
    KINESIS = "kinesis"
    EVENTHUBS = "eventhubs"
    ICEBERG = "iceberg"
    HUDI = "hudi"
    PAIMON = "paimon"
    DELTA_SHARING = "delta-sharing"
    AUTO_LOADER = "auto-loader"
    PYTHON = "python"
    """A data source written in Python: its offset is whatever its author chose."""
    UNKNOWN = "unknown"


# A partition is a Java int; a longer run of digits is some other source's key.
_PARTITION = re.compile("[0-9]{1,10}")
_FORMS: tuple[tuple[SourceKind, frozenset[str], frozenset[str]], ...] = (
    # kind, the fields that it must have, those that it may have besides
    (SourceKind.FILE, frozenset({"logOffset"}), frozenset()),
    (
        SourceKind.ICEBERG,
        frozenset({"version", "snapshot_id", "position", "scan_all_files"}),
        frozenset(),
    ),
    (SourceKind.HUDI, frozenset({"commitTime"}), frozenset()),
    (SourceKind.HUDI, frozenset({"offsetCommitTime"}), frozenset()),
    (
        SourceKind.PAIMON,
        frozenset({"snapshotId", "index", "scanSnapshot"}),
        frozenset({"totalSplits", "emptySnapshotCompleted"}),
    ),
    (
        SourceKind.DELTA_SHARING,
        frozenset({"sourceVersion", "tableId", "tableVersion", "index", "isStartingVersion"}),
        frozenset(),
    ),
    (
        SourceKind.AUTO_LOADER,
        frozenset({"seqNum", "sourceVersion"}),
        frozenset({"lastBackfillStartTimeMs", "lastBackfillFinishTimeMs", "lastInputPath"}),
    ),
)


_PLAIN_FORMS = frozenset(
    {SourceKind.KAFKA, SourceKind.EVENTHUBS, SourceKind.RATE, SourceKind.UNKNOWN}
)


def kind_of(offset: Any, initial: bytes | None = None, text: str | None = None) -> SourceKind:
    """`initial` is the content of `sources/<id>/0`, `text` the offset as it was written."""
    if isinstance(offset, dict):
        kind = _kind_of_object(offset)
        # Other forms have fields that no two authors choose; these two may be anybody's.
        if kind in _PLAIN_FORMS and kind_of_initial(initial) is not SourceKind.KAFKA:
            return SourceKind.PYTHON if _is_pythons(offset, text) else kind
        return kind
    if isinstance(offset, list):
        if offset and all(isinstance(item, dict) and "shard" in item for item in offset):
            return SourceKind.KINESIS  # as Databricks writes it
        return SourceKind.PYTHON if _is_pythons(offset, text) else SourceKind.UNKNOWN
    if type(offset) is int:
        return _kind_of_number(initial) if initial else SourceKind.MEMORY
    return SourceKind.UNKNOWN


def look_alikes(kind: SourceKind) -> tuple[SourceKind, ...]:
    """Other kinds whose offsets have the same form: only the code or a note can tell."""
    return (SourceKind.EVENTHUBS,) if kind is SourceKind.KAFKA else ()


def said_kind(name: str) -> SourceKind | None:
    """The kind that a format() or a user names, where it can stand for one that looks alike."""
    known = {"kafka": SourceKind.KAFKA, "eventhubs": SourceKind.EVENTHUBS}
    return known.get(name.strip().lower())


def _kind_of_number(initial: bytes) -> SourceKind:
    kind = kind_of_initial(initial)
    # Kafka never writes a bare number: the entry is another source's, or damaged.
    return SourceKind.UNKNOWN if kind is SourceKind.KAFKA else kind


def _kind_of_object(offset: dict[str, Any]) -> SourceKind:
    keys = offset.keys()
    if "reservoirId" in keys and "reservoirVersion" in keys:
        return SourceKind.DELTA
    for kind, needed, more in _FORMS:
        if needed <= keys <= needed | more:
            return kind
    if keys == {"offset", "timestamp"} and {int}.issuperset(map(type, offset.values())):
        return SourceKind.RATE
    if is_kafka_form(offset):
        # Kafka's log never has a negative offset; Event Hubs' -1 is its beginning.
        negative = any(at < 0 for partitions in offset.values() for at in partitions.values())
        return SourceKind.EVENTHUBS if negative else SourceKind.KAFKA
    if keys and all(map(_is_partition_values, offset.values())):
        return SourceKind.RATE
    shards = [value for key, value in offset.items() if key != "metadata"]
    if shards and all(isinstance(one, dict) and "iteratorType" in one for one in shards):
        return SourceKind.KINESIS
    return SourceKind.UNKNOWN


def _is_pythons(offset: Any, text: str | None) -> bool:
    """Python's json.dumps puts spaces where no connector of the JVM does."""
    if text is None or not (": " in text or ", " in text):
        return False
    try:
        return text == json.dumps(offset) != json.dumps(offset, separators=(",", ":"))
    except (ValueError, RecursionError):
        return False


def _is_partition_values(value: Any) -> bool:
    """Continuous rate: partition → {"value", "runTimeMs"}."""
    return isinstance(value, dict) and value.keys() == {"value", "runTimeMs"}


def is_kafka_form(value: Any) -> bool:
    """Topic → partition → number, as startingOffsets takes it too, with -1 and -2 in it."""
    return (
        isinstance(value, dict) and bool(value) and all(map(is_partition_offsets, value.values()))
    )


def is_partition_offsets(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and _are_partitions(tuple(value))
        and {int}.issuperset(map(type, value.values()))
    )


@lru_cache(maxsize=64)
def _are_partitions(keys: tuple[str, ...]) -> bool:
    # A topic's partitions are the same in every entry of a long log.
    return all(map(_PARTITION.fullmatch, keys))


def kind_of_initial(initial: bytes | None) -> SourceKind:
    """A bare number: rate and the 2.1 file source leave something in sources/, others nothing."""
    if initial is None:
        return SourceKind.UNKNOWN
    if initial[1:3] == b'{"' or initial[:1] == b"\0":
        return SourceKind.KAFKA
    body = initial.partition(b"\n")[2].strip()
    if body.isdigit():
        return SourceKind.RATE
    return SourceKind.FILE if body.startswith(b'{"path"') else SourceKind.UNKNOWN
