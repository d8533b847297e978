"""Changes beside a query's own code: settings, schemas, limits, triggers, modes and sinks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from compatibility.mutations.applications import Version
from compatibility.mutations.inputs import CSV_SCHEMA, SCHEMA
from compatibility.mutations.queries import Query

_SETTINGS = (
    ("spark.sql.session.timeZone", "Asia/Tokyo"),
    ("spark.sql.ansi.enabled", "false"),
    ("spark.sql.caseSensitive", "true"),
    ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
    ("spark.sql.legacy.sizeOfNull", "true"),
    ("spark.sql.legacy.allowHashOnMapType", "true"),
    ("spark.sql.streaming.multipleWatermarkPolicy", "max"),
    ("spark.sql.decimalOperations.allowPrecisionLoss", "false"),
)
_EASY_SETTINGS = (
    ("spark.sql.shuffle.partitions", "2"),
    ("spark.sql.files.maxPartitionBytes", "1000000"),
    ("spark.sql.codegen.wholeStage", "true"),
)


@dataclass(frozen=True)
class Change:
    kind: str
    what: str
    version: Version
    harmless: bool = False
    in_two_runs: bool = False


def changes(query: Query) -> Iterator[Change]:
    plain = Version(query)
    for key, value in _SETTINGS:
        yield Change("setting", f"{key}={value}", replace(plain, conf={key: value}))
    for key, value in _EASY_SETTINGS:
        yield Change("easy-setting", f"{key}={value}", replace(plain, conf={key: value}), True)
    for files in (2, 5):
        yield Change(
            "limit", f"maxFilesPerTrigger={files}", replace(plain, files=files), True, True
        )
    once = replace(query, trigger={"once": True})
    yield Change("trigger", "once", Version(once), True, True)
    yield from _schemas(query, plain)
    for mode in sorted({"update", "append", "complete"} - {query.mode}):
        yield Change("mode", mode, Version(replace(query, mode=mode)))
    if query.sink == "rows":
        sink = 'writer.queryName("named").foreachBatch(gather)'
        yield Change("query-name", "queryName", replace(plain, sink=sink), True)
    if query.sink == "parts":
        sink = 'writer.format("json").option("path", OUTPUT).partitionBy("small")'
        yield Change("sink-key", "partitionBy", replace(plain, sink=sink))
    if query.sink == "files":
        sink = 'writer.format("json").option("path", OUTPUT).option("compression", "none")'
        yield Change("sink-option", "compression", replace(plain, sink=sink), True)


def _schemas(query: Query, plain: Version) -> Iterator[Change]:
    if '"csv"' in query.code:
        columns = CSV_SCHEMA.split(", ")
        turned = ", ".join([columns[0], columns[2], columns[1], columns[3]])
        yield Change("file-schema", "v and w swapped", replace(plain, csv_schema=turned))
        text = ", ".join([columns[0], columns[1], columns[2].replace("LONG", "DOUBLE"), columns[3]])
        yield Change("file-schema", "w is a DOUBLE", replace(plain, csv_schema=text))
        return
    columns = SCHEMA.split(", ")
    yield Change(
        "json-schema",
        "columns in another order",
        replace(plain, schema=", ".join(columns[::-1])),
        # The state of a join of streams has its columns in the source's order.
        not query.name.startswith("joined"),
    )
    yield Change("json-schema", "a column more", replace(plain, schema=f"{SCHEMA}, u STRING"), True)
    wider = SCHEMA.replace("v LONG", "v DOUBLE")
    yield Change("file-schema", "v is a DOUBLE", replace(plain, schema=wider))
    absent = SCHEMA.replace("v LONG", "v LONG, V2 LONG").replace("v LONG,", "vv LONG, v LONG,")
    yield Change("json-schema", "two columns more", replace(plain, schema=absent), True)
