"""Describes what a Python file says about streams, as data for lint's rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from floodmark.checkpoint.conf_keys import CHECKPOINT_LOCATION
from floodmark.rules.code.spelling import is_misspelt


@dataclass(frozen=True)
class Value:
    """An expression, as far as the code alone shows its value."""

    pattern: str
    """The text, with `{}` for each unknown part."""
    names: frozenset[str] = frozenset()
    """All names in the expression, resolved or not."""
    calls: frozenset[str] = frozenset()
    """The dotted names of the functions that it calls."""
    known: bool = False
    number: float | None = None
    unknowns: tuple[str, ...] = ()
    """A text for each `{}` of the pattern; equal texts mean equal values."""
    default: str | None = None
    """The default value of an environment variable."""

    @property
    def literal(self) -> str | None:
        return self.pattern if self.known else None

    @property
    def identity(self) -> str | None:
        """A text that is equal for two expressions with the same value; None if that is not
        known.
        """
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
    """One method call between a DataFrame's source and its sink."""

    name: str
    line: int
    arguments: tuple[Value, ...] = ()
    other_is_stream: bool = False
    """join: whether the code shows that the other side is a stream, too."""


@dataclass(frozen=True)
class Read:
    line: int
    format: str | None
    options: tuple[Option, ...]
    options_known: bool
    """False if some options come from code that is not visible."""

    def option(self, key: str) -> Option | None:
        return _option(self.options, key)


@dataclass(frozen=True)
class BatchFunction:
    """The function that `foreachBatch` was given."""

    line: int
    uses_batch_id: bool
    writes: str | None
    """The write that a second run would repeat; None if there is none."""
    only_shows: bool = False
    """Whether it only prints and counts, as far as the code shows."""


@dataclass(frozen=True)
class Stream:
    """One `writeStream` and the calls on it."""

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
    """`append` if none is given; None if it is not visible."""
    query_name: Value | None
    batch_function: BatchFunction | None
    each: bool
    """Whether it has a foreach or foreachBatch."""
    operations: tuple[Operation, ...]
    reads: tuple[Read, ...]
    abandoned: bool
    """Whether it is made, not started, and never used again."""
    loop: frozenset[str] | None
    """The names of the for loop that makes it without waiting for it."""
    branches: tuple[tuple[int, int], ...] = ()
    """The arms of the `if`s around it."""
    trigger_once: int | None = None
    """The line of trigger(once=True)."""
    flow: str | None = None
    """The function that is a flow of a declarative pipeline; it has no writeStream."""

    def option(self, key: str) -> Option | None:
        return _option(self.options, key)

    @property
    def checkpoint(self) -> Option | None:
        return self.option(CHECKPOINT_LOCATION)

    @property
    def keeps_output(self) -> bool:
        """False for a sink that only shows rows to a person; True if the sink is not visible."""
        if self.batch_function is not None and self.batch_function.only_shows:
            return False
        literal = self.format.literal if self.format and not self.each else None
        return literal is None or literal.lower() not in ("console", "memory", "noop")

    @property
    def destination(self) -> tuple[str, str] | None:
        """The kind and name of what the query writes to: a folder, a table or a topic."""
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
        """The folder that the query writes to, if the code gives one."""
        path = self.option("path")
        return self.output or (path.value if path else None)

    @property
    def folders(self) -> tuple[str, str] | None:
        """The checkpoint's folder and the output's, if the code shows both."""
        target, checkpoint = self.target, self.checkpoint
        if target is None or checkpoint is None:
            return None
        inside, output = checkpoint.value.identity, target.identity
        return (inside, output) if inside and output else None

    @property
    def misspelt_checkpoint(self) -> Option | None:
        return next((item for item in self.options if is_misspelt(item.key)), None)

    @property
    def has_watermark(self) -> bool:
        return any(operation.name == "withWatermark" for operation in self.operations)

    @property
    def aggregations(self) -> tuple[Operation, ...]:
        """The groupings that are followed by an aggregate."""
        steps = zip(self.operations, self.operations[1:], strict=False)
        return tuple(a for a, b in steps if a.name in GROUPINGS and b.name in _AGGREGATES)

    @property
    def is_refused_in_append(self) -> bool:
        """Whether Spark refuses it: an aggregate in append mode that no watermark closes."""
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
    """A function or statement that a declarative pipeline turns into a table or a view."""

    kind: str
    """The decorator's name: table, append_flow, materialized_view, temporary_view, view"""
    function: str
    line: int
    returns: frozenset[str]
    """`stream`, `batch` or `unknown`, for each of its return statements."""
    legacy: bool = False
    """Whether it uses `dlt`, whose @table accepts both, or a statement that only Databricks has."""
    statement: str = ""
    """How a definition in SQL begins."""


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
    """(name, line) of outside contexts and streams that the function uses."""
    setup: tuple[tuple[str, int], ...]
    """(method, line) of set-up calls on the recovered context."""


@dataclass(frozen=True)
class DStreams:
    """How a file uses `pyspark.streaming`."""

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
    """Why it does not parse as Python."""
    problem_line: int | None = None
    streams: tuple[Stream, ...] = ()
    reads: tuple[Read, ...] = ()
    """Every readStream, also one whose writeStream is not in this file."""
    write_options: tuple[Option, ...] = ()
    """Options of batch writes."""
    confs: tuple[Option, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    dstreams: DStreams = field(default_factory=DStreams)
    flows: tuple[DefinedFlow, ...] = ()
    """The definitions of a declarative pipeline; streaming ones are also in `streams`."""
    runs_locally: bool = False
    """Whether it sets its master to local."""
    allowed: Mapping[int, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Line → rules that a comment in this line allows."""
    newer: bool = False
    """Whether a later Python may be able to parse it."""
    on_databricks: bool = False
    """Whether it is written for Databricks, where a path without a scheme is on DBFS."""
    waits: tuple[int, ...] = ()
    """The lines that wait for a query or stop it."""
    lines: tuple[int, ...] = ()
    """In a notebook: the line of the file for each line of its code."""

    @property
    def is_notebook(self) -> bool:
        return bool(self.lines) or self.on_databricks

    def place(self, line: int | None) -> int | None:
        """Return the line of the file for a line of the code."""
        if line is None or not self.lines:
            return line
        return self.lines[min(max(line, 1), len(self.lines)) - 1]

    def conf(self, key: str) -> Option | None:
        return next((conf for conf in self.confs if conf.key == key), None)


def _option(options: tuple[Option, ...], key: str) -> Option | None:
    """Return the last option with this key: it overrides others, and Spark ignores case."""
    wanted = key.lower()
    return next((item for item in reversed(options) if item.key.lower() == wanted), None)
