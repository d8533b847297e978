"""What a Python file says about streams, as data for lint's rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from floodmark.checkpoint.conf_keys import CHECKPOINT_LOCATION
from floodmark.rules.code.spelling import is_misspelt


@dataclass(frozen=True)
class Value:
    """An expression, as far as the code alone tells."""

    pattern: str
    """The text, with `{}` where a part is not known."""
    names: frozenset[str] = frozenset()
    """Every name on the way, resolved or not."""
    calls: frozenset[str] = frozenset()
    """Dotted names of what is called to make it."""
    known: bool = False
    number: float | None = None
    unknowns: tuple[str, ...] = ()
    """What stands for each `{}` of the pattern; two equal texts are one value."""
    default: str | None = None
    """What an environment variable is taken for where it is not set."""

    @property
    def literal(self) -> str | None:
        return self.pattern if self.known else None

    @property
    def identity(self) -> str | None:
        """Equal for two expressions that must have the same value; None where nobody knows."""
        if self.known:
            return self.pattern
        parts = self.pattern.split("{}")
        if len(parts) != len(self.unknowns) + 1:
            return None
        return parts[0] + "".join(
            f"{{{unknown}}}{part}" for unknown, part in zip(self.unknowns, parts[1:], strict=True)
        )


@dataclass(frozen=True)
class Option:
    key: str
    value: Value
    line: int


@dataclass(frozen=True)
class Operation:
    """One method of a DataFrame's way from its source to its sink."""

    name: str
    line: int
    arguments: tuple[Value, ...] = ()
    other_is_stream: bool = False
    """join: the other side is seen to be a stream, too."""


@dataclass(frozen=True)
class Read:
    line: int
    format: str | None
    options: tuple[Option, ...]
    options_known: bool
    """False where options come from somewhere that is not seen."""

    def option(self, key: str) -> Option | None:
        return _option(self.options, key)


@dataclass(frozen=True)
class BatchFunction:
    """What `foreachBatch` was given."""

    line: int
    uses_batch_id: bool
    writes: str | None
    """How it writes, where a second run writes a second time."""
    only_shows: bool = False
    """It prints and counts, and is not seen to write anything."""


@dataclass(frozen=True)
class Stream:
    """One `writeStream` and what is done to it."""

    line: int
    format: Value | None
    options: tuple[Option, ...]
    options_known: bool
    started_at: int | None
    """The line of start(), toTable() or table()."""
    to_table: bool
    table: Value | None
    output: Value | None
    output_mode: str | None
    """`append` where none is given; None where it is not seen."""
    query_name: Value | None
    batch_function: BatchFunction | None
    each: bool
    """It has a foreach or foreachBatch."""
    operations: tuple[Operation, ...]
    reads: tuple[Read, ...]
    abandoned: bool
    """Made, not started, and never used again."""
    loop: frozenset[str] | None
    """In a for loop that goes on without waiting: the loop's names."""
    branches: tuple[tuple[int, int], ...] = ()
    """Which arms of which ifs it stands in."""
    trigger_once: int | None = None
    """The line of trigger(once=True)."""
    flow: str | None = None
    """The function that a declarative pipeline makes a stream of; no writeStream is seen."""

    def option(self, key: str) -> Option | None:
        return _option(self.options, key)

    @property
    def checkpoint(self) -> Option | None:
        return self.option(CHECKPOINT_LOCATION)

    @property
    def keeps_output(self) -> bool:
        """False for a sink that is for a person to look at; True where the sink is not seen."""
        if self.batch_function is not None and self.batch_function.only_shows:
            return False
        literal = self.format.literal if self.format and not self.each else None
        return literal is None or literal.lower() not in ("console", "memory", "noop")

    @property
    def destination(self) -> tuple[str, str] | None:
        """Kind and name of what the query writes to: a folder, a table or a topic."""
        topic = self.option("topic")
        found = (
            ("table", self.table),
            ("folder", self.target),
            ("topic", topic.value if topic else None),
        )
        return next(
            ((kind, value.literal) for kind, value in found if value and value.literal), None
        )

    @property
    def target(self) -> Value | None:
        """The folder that the query writes to, where it is given."""
        path = self.option("path")
        return self.output or (path.value if path else None)

    @property
    def misspelt_checkpoint(self) -> Option | None:
        return next((item for item in self.options if is_misspelt(item.key)), None)

    @property
    def has_watermark(self) -> bool:
        return any(operation.name == "withWatermark" for operation in self.operations)

    @property
    def aggregations(self) -> tuple[Operation, ...]:
        """The groupings whose next step is an aggregate."""
        steps = zip(self.operations, self.operations[1:], strict=False)
        return tuple(a for a, b in steps if a.name in GROUPINGS and b.name in _AGGREGATES)

    @property
    def is_refused_in_append(self) -> bool:
        """Spark refuses an aggregate in append mode that no watermark closes."""
        return (
            self.output_mode == "append"
            and bool(self.reads)
            and not self.has_watermark
            and bool(self.aggregations)
        )

    @property
    def is_stateful(self) -> bool:
        return any(operation.name in STATEFUL for operation in self.operations) or any(
            operation.name == "join" and operation.other_is_stream for operation in self.operations
        )


GROUPINGS = frozenset({"groupBy", "groupby", "rollup", "cube"})
_AGGREGATES = frozenset({"agg", "count", "sum", "avg", "mean", "min", "max"})
STATEFUL = frozenset(
    {
        "groupBy",
        "groupby",
        "groupByKey",
        "dropDuplicates",
        "drop_duplicates",
        "dropDuplicatesWithinWatermark",
        "distinct",
        "applyInPandasWithState",
        "transformWithState",
        "transformWithStateInPandas",
    }
)


@dataclass(frozen=True)
class DefinedFlow:
    """A function or statement that a declarative pipeline makes a table or a view of."""

    kind: str
    """The decorator's name: table, append_flow, materialized_view, temporary_view, view"""
    function: str
    line: int
    returns: frozenset[str]
    """stream, batch or unknown, for each of its returns"""
    legacy: bool = False
    """By `dlt`, whose @table takes both, or by a statement that Databricks alone has."""
    statement: str = ""
    """Of a definition in SQL: how it begins."""


@dataclass(frozen=True)
class Deletion:
    line: int
    how: str
    target: Value


@dataclass(frozen=True)
class Recovery:
    """`StreamingContext.getOrCreate(directory, function)`"""

    line: int
    directory: Value
    outside: tuple[tuple[str, int], ...]
    """(name, line): streaming things from outside that the function uses."""
    setup: tuple[tuple[str, int], ...]
    """(method, line): set-up done on the context after it was recovered."""


@dataclass(frozen=True)
class DStreams:
    """What a file does with `pyspark.streaming`."""

    batch_seconds: float | None = None
    directories: tuple[Option, ...] = ()
    """StreamingContext.checkpoint(directory)"""
    intervals: tuple[tuple[float, int], ...] = ()
    """(seconds, line) of DStream.checkpoint(interval)"""
    stateful: tuple[tuple[str, int], ...] = ()
    sockets: tuple[int, ...] = ()
    recoveries: tuple[Recovery, ...] = ()


@dataclass(frozen=True)
class Code:
    path: str
    problem: str | None = None
    """Why it is not Python."""
    problem_line: int | None = None
    streams: tuple[Stream, ...] = ()
    reads: tuple[Read, ...] = ()
    """Every readStream, also one whose stream is written where this file does not show it."""
    write_options: tuple[Option, ...] = ()
    """Options of batch writes."""
    confs: tuple[Option, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    dstreams: DStreams = field(default_factory=DStreams)
    flows: tuple[DefinedFlow, ...] = ()
    """What a declarative pipeline is made of; those that stream are among `streams` as well."""
    runs_locally: bool = False
    """It sets its master to local."""
    allowed: Mapping[int, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Line → rules that a comment there allows."""
    newer: bool = False
    """A later Python than this one may read it."""
    on_databricks: bool = False
    """It is written for Databricks, where a path without a scheme is on DBFS."""
    waits: tuple[int, ...] = ()
    """The lines that wait for a query or stop it."""
    lines: tuple[int, ...] = ()
    """A notebook's: the line of its file that each line of its code came from."""

    @property
    def is_notebook(self) -> bool:
        return bool(self.lines) or self.on_databricks

    def place(self, line: int | None) -> int | None:
        """The line of the file, where a line of the code stands."""
        if line is None or not self.lines:
            return line
        return self.lines[min(max(line, 1), len(self.lines)) - 1]

    def conf(self, key: str) -> Option | None:
        return next((conf for conf in self.confs if conf.key == key), None)


def _option(options: tuple[Option, ...], key: str) -> Option | None:
    """The last one wins; Spark does not tell large letters from small ones."""
    wanted = key.lower()
    return next((item for item in reversed(options) if item.key.lower() == wanted), None)
