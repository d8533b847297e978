"""What a file of Python says about streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


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

    @property
    def literal(self) -> str | None:
        return self.pattern if self.known else None


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


@dataclass(frozen=True)
class Stream:
    """One `writeStream` and what is done to it."""

    line: int
    format: Value | None
    options: tuple[Option, ...]
    options_known: bool
    started_at: int | None
    """The line of start() or toTable()."""
    to_table: bool
    output: Value | None
    output_mode: str | None
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

    def option(self, key: str) -> Option | None:
        return _option(self.options, key)

    @property
    def checkpoint(self) -> Option | None:
        return self.option("checkpointLocation")

    @property
    def is_stateful(self) -> bool:
        return any(operation.name in STATEFUL for operation in self.operations) or any(
            operation.name == "join" and operation.other_is_stream for operation in self.operations
        )


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
    write_options: tuple[Option, ...] = ()
    """Options of batch writes."""
    confs: tuple[Option, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    dstreams: DStreams = field(default_factory=DStreams)
    runs_locally: bool = False
    """It sets its master to local."""
    allowed: Mapping[int, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Line → rules that a comment there allows."""
    lines: tuple[int, ...] = ()
    """A notebook's: the line of its file that each line of its code came from."""

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
