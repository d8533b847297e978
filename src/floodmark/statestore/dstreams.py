"""Reads the state of a DStreams application: the keys and values of one stream after a batch."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint, SavedRdd
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.dstreams.plain_pickle import NotPlain, plain_loads, trusting_loads
from floodmark.dstreams.plain_values import json_value, named
from floodmark.dstreams.state_rows import state_pairs
from floodmark.errors import CannotRead, FloodmarkError, NoAnswer, WrongUse
from floodmark.screen import ShownByFields
from floodmark.state.rows.arrow_ddl import arrow_ddl
from floodmark.statestore.key_counts import PartitionStats, StateStats
from floodmark.statestore.key_lookup import KeyNotThere
from floodmark.storage.files import Files

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[int, dict[str, Any], dict[str, Any]]
Parts = Callable[[DStreamsCheckpoint, Sequence[bytes]], list[bytes]]
"""Turns the parts of a saved RDD into streams of Java objects."""


@dataclass(frozen=True, repr=False)
class DStreamState(ShownByFields):
    """Rows of (partition, key, value) in a saved RDD."""

    operator: int
    """The stream's number in `inspect`."""
    operator_name: str
    """Spark's class of the stream."""
    batch: int
    """The time of the batch after which the state was saved."""
    folder: str
    """The saved RDD."""
    partitions: tuple[int, ...]
    """The parts that are read."""
    files: Files = field(repr=False)
    """The application's checkpoint folder."""
    loads: Callable[[bytes], Any] = field(repr=False)
    """What reads a pickled record."""
    read_parts: Sequence[bytes] | None = field(repr=False, default=None)
    """The parts as Spark has converted them, if only Spark can read them."""
    store: str = "default"
    """Always `default`: a stream has one."""
    stores: tuple[str, ...] = ("default",)
    """All names that can be given instead of `store`."""
    hint: str = ""
    """Always empty: see StateView."""
    noun: str = "key"
    """What it has one record of each."""

    def pairs(self) -> Iterator[tuple[int, Any, Any]]:
        """Yield (partition, key, value) as Python values, in the order of the parts."""
        for partition in self.partitions:
            path = RelativePath(f"{self.folder}/part-{partition:05d}")
            try:
                for key, value in state_pairs(self._part(partition, path), self.loads):
                    yield partition, key, value
            except FloodmarkError as error:
                error.name_file(path)
                raise

    def _part(self, partition: int, path: RelativePath) -> bytes:
        return self.files.read(path) if self.read_parts is None else self.read_parts[partition]

    def named_rows(self) -> Iterator[Row]:
        """(partition, key, value), each with named fields."""
        for partition, key, value in self.pairs():
            yield partition, named(key, "key"), named(value, "value")

    def rows(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the rows as JSON data."""
        found: list[dict[str, Any]] = []
        for partition, key, value in self.named_rows():
            if limit is not None and len(found) >= limit:
                break
            found.append(_json_row(partition, key, value))
        return found

    def lookup(self, key: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the rows whose key has these fields."""
        wanted = dict(key)
        found = [
            row
            for partition, held, value in self.named_rows()
            if (row := _json_row(partition, held, value))
            and all(name in row["key"] and row["key"][name] == one for name, one in wanted.items())
        ]
        if not found:
            raise KeyNotThere(
                "the state has no such key",
                f"The keys have the fields: {', '.join(self._key_fields()) or 'none'}.",
                "`floodmark state CP --limit 5` shows some of them.",
            )
        return found

    def _key_fields(self) -> list[str]:
        first = next(self.named_rows(), None)
        return list(first[1]) if first else []

    def stats(self) -> StateStats:
        """Return how many keys each part has, and how large it is."""
        counts = dict.fromkeys(self.partitions, 0)
        for partition, _, _ in self.pairs():
            counts[partition] += 1
        sizes = {file.path: file.size for file in self.files.list(self.folder).files}
        return StateStats.over(
            PartitionStats(part, keys, sizes.get(f"{self.folder}/part-{part:05d}", 0))
            for part, keys in counts.items()
        )

    def to_arrow(self) -> pa.Table:
        """All rows as a pyarrow.Table: partition, key, value."""
        import pyarrow as pa

        partitions, keys, values = [], [], []
        for partition, key, value in self.named_rows():
            partitions.append(partition)
            keys.append(key)
            values.append(value)
        try:
            columns = [
                pa.array(partitions, pa.int32()),
                pa.array(keys) if keys else pa.array([], pa.struct([("key", pa.null())])),
                pa.array(values) if values else pa.array([], pa.struct([("value", pa.null())])),
            ]
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise NoAnswer(
                "the keys or values have different types, but a column has only one",
                str(error).splitlines()[0],
                "Get the rows as JSON: floodmark state CP --json.",
            ) from None
        return pa.table(columns, names=["partition", "key", "value"])

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    @property
    def key_schema(self) -> str:
        """The key's fields in SQL's words; empty where rows differ."""
        return self._schemas[0]

    @property
    def value_schema(self) -> str:
        """The value's fields in SQL's words; empty where rows differ."""
        return self._schemas[1]

    @cached_property
    def _schemas(self) -> tuple[str, str]:
        """The schemas of the rows, because none was stored; empty if rows differ."""
        try:
            schema = self.to_arrow().schema
        except NoAnswer:
            return "", ""
        return arrow_ddl(schema.field("key").type), arrow_ddl(schema.field("value").type)

    def export(self, path: str) -> int:
        """Write all rows into a Parquet file; return their number."""
        from floodmark.statestore.export import export_parquet

        table = self.to_arrow()
        return export_parquet(table.to_batches(), table.schema, path)


def _json_row(partition: int, key: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    return {"partition": partition, "key": json_value(key), "value": json_value(value)}


def open_dstream_state(
    files: Files,
    checkpoint: Checkpoint,
    stream: int = 0,
    batch: int | None = None,
    trust: bool = False,
    through_spark: Parts | None = None,
) -> DStreamState:
    """Return the newest complete state of a stream, or the state after one batch.

    `trust` unpickles anything, which runs code that the folder's writer chose. `through_spark`
    reads the parts that only Spark can read, and runs such code too.
    """
    found = checkpoint.dstreams
    assert found is not None
    chosen = _stream(checkpoint.path, found, stream)
    rdd = _rdd(checkpoint.path, found, chosen, batch)
    assert rdd.batch_time_ms is not None
    read_parts = None
    if found.has_kryo_records:
        if not trust or through_spark is None:
            raise _of_kryo(checkpoint.path)
        paths = (RelativePath(f"{rdd.path}/part-{at:05d}") for at in range(rdd.partitions))
        read_parts = through_spark(found, [files.read(path) for path in paths])
    return DStreamState(
        chosen,
        found.streams[chosen].kind,
        rdd.batch_time_ms,
        rdd.path,
        tuple(range(rdd.partitions)),
        files,
        trusting_loads if trust else plain_loads,
        read_parts,
    )


def _of_kryo(path: str) -> NotPlain:
    return NotPlain(
        f"{path}: the application saves its state with Kryo",
        "Kryo's records contain no names. Only Spark can read them, with the application's "
        "classes, and that runs code that the writer of this folder chose.",
        "If you trust the writer, give --trust, with --conf spark.jars=APP.jar for classes of "
        "the application.",
    )


def _stream(path: str, found: DStreamsCheckpoint, wanted: int) -> int:
    if found.restart_file is None:
        raise CannotRead(
            f"{path}: none of its checkpoint files can be read",
            "These files say which saved RDD is the state of which stream.",
            f"floodmark doctor {shlex.quote(path)}",
        )
    states, unsaved = found.state_streams, found.unsaved_streams
    if wanted in states:
        return wanted
    if wanted in unsaved:
        raise NoAnswer(
            f"{path}: the state of stream {wanted} is not saved yet",
            f"The stream is a {found.streams[wanted].kind} that has not been saved for the first "
            "time.",
            f"Streams with a saved state: {found.named_streams(states) or 'none'}.",
        )
    if not states:
        raise NoAnswer(
            f"{path}: no stream of this application has saved a state",
            "updateStateByKey, mapWithState and windows save their state at their checkpoint "
            "interval.",
            f"`floodmark inspect {shlex.quote(path)}` shows the streams.",
        )
    # The default is 0; it is clear which state is meant only if no other stream has one.
    if wanted == 0 and len(states) == 1 and not unsaved:
        return states[0]
    raise WrongUse(
        f"{path}: stream {wanted} has no state",
        f"The streams with state are: {found.named_streams(sorted((*states, *unsaved)))}.",
        f"Choose one: floodmark state {shlex.quote(path)} --operator {states[0]}",
    )


def _rdd(path: str, found: DStreamsCheckpoint, stream: int, batch: int | None) -> SavedRdd:
    saved = [rdd for rdd in found.rdds if rdd.stream == stream and rdd.batch_time_ms is not None]
    whole = [rdd for rdd in saved if rdd.missing is None and rdd.partitions]
    chosen = [rdd for rdd in whole if batch in (None, rdd.batch_time_ms)]
    if chosen:
        return max(chosen, key=lambda rdd: rdd.batch_time_ms or 0)
    times = ", ".join(str(rdd.batch_time_ms) for rdd in whole)
    if batch is not None and whole:
        raise NoAnswer(
            f"{path}: the state after batch {batch} is not saved",
            f"The folder has the states after: {times}.",
            "Choose one of them, or leave --batch out for the newest.",
        )
    named_at = ", ".join(found.streams[stream].rdds.values())
    raise CannotRead(
        f"{path}: the state of stream {stream} is not in this folder, or is incomplete",
        f"The application names {named_at}.",
        f"floodmark doctor {shlex.quote(path)}",
    )
