"""A checkpoint and new code that meet, made of plain data: nothing changed unless it is said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from floodmark.checkpoint.commits import parse_commit
from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.checkpoint.offsets import parse_offsets
from floodmark.checkpoint.metadata import parse_operator_metadata
from floodmark.checkpoint.outline import (
    FamilyOutline,
    OperatorOutline,
    Outline,
    SourceOutline,
)
from floodmark.checkpoint.start_note import LastStart
from floodmark.rules.restarts.comparison import Comparison
from plan_trees import plan

PARTITIONS = "spark.sql.shuffle.partitions"
CONF = {
    "spark.sql.streaming.stateStore.encodingFormat": "unsaferow",
    PARTITIONS: "2",
    "spark.sql.streaming.stateStore.providerClass": "a.b.HDFSBackedStateStoreProvider",
    "spark.sql.streaming.aggregation.stateFormatVersion": "2",
}


def schema(ddl: str) -> str:
    """`user string!, n long`: Spark's JSON of it; a ! for no nulls."""
    fields = []
    for column in ddl.split(","):
        name, kind = column.split()
        fields.append(
            {
                "name": name,
                "type": kind.rstrip("!"),
                "nullable": not kind.endswith("!"),
                "metadata": {},
            }
        )
    return json.dumps({"type": "struct", "fields": fields})


def operator(
    name: str | None = "stateStoreSave",
    key: str = "user string",
    value: str = "sum double, count long!",
    number: int = 0,
    store: str = "default",
    properties: Mapping[str, Any] | None = None,
    families: Mapping[str, tuple[str, str]] | None = None,
) -> OperatorOutline:
    found = families or {"default": (key, value)}
    return OperatorOutline(
        number,
        name,
        {
            store: tuple(
                FamilyOutline(family, schema(of_key), schema(of_value))
                for family, (of_key, of_value) in found.items()
            )
        },
        properties_json=json.dumps(properties) if properties else "",
    )


def join(key: str = "field0 string", value: str = "user string, qty long") -> OperatorOutline:
    stores = {}
    for side in ("left", "right"):
        counts = FamilyOutline("default", schema(key), schema("value long"))
        rows = FamilyOutline("default", schema(f"{key}, index long"), schema(value))
        stores[f"{side}-keyToNumValues"] = (counts,)
        stores[f"{side}-keyWithIndexToValue"] = (rows,)
    return OperatorOutline(0, "symmetricHashJoin", stores)


def source(kind: str = "json", place: str = "/in", **options: str) -> SourceOutline:
    name = "subscribe" if kind == "kafka" else "path"
    return SourceOutline(kind, {name: place, **options}, "user STRING, amount DOUBLE")


def meeting(
    offsets: tuple[str, ...] = ('{"logOffset":4}',),
    old: Mapping[str, Any] | None = None,
    new: Mapping[str, Any] | None = None,
    held: tuple[OperatorOutline, ...] | None = None,
    *,
    batches: tuple[int, ...] = (6, 7),
    committed: int = 7,
    pins: Mapping[str, str] | None = None,
    version: int = 1,
    unique_ids: bool = False,
    metadata: str | None = None,
    partitions: int = 2,
    **more: Any,
) -> Comparison:
    """`old` and `new` change what the note and the new code say; both begin alike."""
    outline = Outline(
        (source(),),
        "parquet",
        {"path": "/out"},
        "Append",
        "ProcessingTimeTrigger(0)",
        schema("user string, total double"),
        plan(),
        (operator(),) if held is None else held,
        {},
        {},
        "4.2.0",
    )
    last = LastStart(
        outline.sources,
        outline.sink,
        outline.sink_options,
        outline.output_mode,
        outline.trigger,
        outline.schema_json,
        outline.spark_version,
        {},
        "a",
        outline.tree,
    )
    noted = None if old is not None and "none" in old else replace(last, **(old or {}))
    checkpoint = _checkpoint(
        offsets, batches, committed, pins, version, unique_ids, metadata, partitions
    )
    fingerprint = more.pop("fingerprint", "a")
    return Comparison(
        checkpoint,
        outline.operators,
        replace(outline, **(new or {})),
        noted,
        fingerprint,
        **more,
    )


def _checkpoint(
    offsets: tuple[str, ...],
    batches: tuple[int, ...],
    committed: int,
    pins: Mapping[str, str] | None,
    version: int,
    unique_ids: bool,
    metadata: str | None,
    partitions: int,
) -> Checkpoint:
    head = {"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": CONF if pins is None else pins}
    lines = [f"v{version}", json.dumps(head), *offsets]
    ids = {"stateUniqueIds": {"0": [["a"], ["b"]]}} if unique_ids else {}
    commit = f"v{2 if unique_ids else 1}\n" + json.dumps({"nextBatchWatermarkMs": 0, **ids})
    return Checkpoint(
        "/ck",
        Kind.STRUCTURED_STREAMING,
        tuple(FileInfo(f"state/0/{at}/{committed + 1}.delta", 46) for at in range(partitions)),
        offset_ids=batches,
        commit_ids=tuple(batch for batch in batches if batch <= committed),
        offsets={batch: parse_offsets("\n".join(lines).encode()) for batch in batches},
        commits={committed: parse_commit(commit.encode())},
        operators={} if metadata is None else {0: parse_operator_metadata(metadata.encode())},
    )
