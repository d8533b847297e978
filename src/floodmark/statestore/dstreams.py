"""The state of a DStreams application: the keys and values of one stream after one batch."""

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
from floodmark.screen import fields_html, fields_text
from floodmark.state.rows.arrow_ddl import arrow_ddl
from floodmark.statestore.view import KeyNotThere, PartitionStats, StateStats
from floodmark.storage.files import Files

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[int, dict[str, Any], dict[str, Any]]
Parts = Callable[[DStreamsCheckpoint, Sequence[bytes]], list[bytes]]
"""The parts of a saved RDD, each made a stream of Java objects."""


@dataclass(frozen=True)
class DStreamState:
    """Rows of (partition, key, value), as a saved RDD has them."""

    operator: int
    """The stream, as `inspect` numbers them."""
    operator_name: str
    batch: int
    """The time of the batch whose state it is."""
    folder: str
    partitions: tuple[int, ...]
    files: Files = field(repr=False)
    loads: Callable[[bytes], Any] = field(repr=False)
    read_parts: Sequence[bytes] | None = field(repr=False, default=None)
    """What Spark has made of the parts, where only it can read them."""
    store: str = "default"
    stores: tuple[str, ...] = ("default",)
    hint: str = ""
    noun: str = "key"

    __repr__ = fields_text
    _repr_html_ = fields_html

    def pairs(self) -> Iterator[tuple[int, Any, Any]]:
        """(partition, key, value) as Python values, in the order of the parts."""
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
        for partition, key, value in self.pairs():
            yield partition, named(key, "key"), named(value, "value")

    def rows(self, limit: int | None = None) -> list[dict[str, Any]]:
        """As JSON has them."""
        found: list[dict[str, Any]] = []
        for partition, key, value in self.named_rows():
            if limit is not None and len(found) >= limit:
                break
            found.append(_json_row(partition, key, value))
        return found

    def lookup(self, key: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows whose key has these fields."""
        wanted = dict(key)
        found = [
            row
            for partition, held, value in self.named_rows()
            if (row := _json_row(partition, held, value))
            and all(name in row["key"] and row["key"][name] == one for name, one in wanted.items())
        ]
        if not found:
            raise KeyNotThere(
                "the state knows nothing of that key",
                f"Its keys have the fields: {', '.join(self._key_fields()) or 'none'}.",
                "`floodmark state CP --limit 5` shows some of them.",
            )
        return found

    def _key_fields(self) -> list[str]:
        first = next(self.named_rows(), None)
        return list(first[1]) if first else []

    def stats(self) -> StateStats:
        counts = dict.fromkeys(self.partitions, 0)
        for partition, _, _ in self.pairs():
            counts[partition] += 1
        sizes = {file.path: file.size for file in self.files.list(self.folder).files}
        parts = tuple(
            PartitionStats(part, keys, sizes.get(f"{self.folder}/part-{part:05d}", 0))
            for part, keys in counts.items()
        )
        keys = sum(counts.values())
        mean = keys / len(parts) if parts else 0
        skew = max(counts.values()) / mean if mean else None
        return StateStats(keys, sum(part.bytes for part in parts), parts, skew)

    def to_arrow(self) -> pa.Table:
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
                "the keys or values are of different types, and a column has one",
                str(error).splitlines()[0],
                "Take the rows as JSON: floodmark state CP --json.",
            ) from None
        return pa.table(columns, names=["partition", "key", "value"])

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()

    @property
    def key_schema(self) -> str:
        return self._schemas[0]

    @property
    def value_schema(self) -> str:
        return self._schemas[1]

    @cached_property
    def _schemas(self) -> tuple[str, str]:
        """As the rows have them: nothing was written down. Empty where they differ."""
        try:
            schema = self.to_arrow().schema
        except NoAnswer:
            return "", ""
        return arrow_ddl(schema.field("key").type), arrow_ddl(schema.field("value").type)

    def export(self, path: str) -> int:
        """All rows into a Parquet file; how many."""
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
    """The newest whole state of a stream, or that of one batch.

    `trust` unpickles whatever is there, which runs code that the folder's writer chose.
    `through_spark` reads the parts that only Spark can read, and runs such code as well.
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
        "Kryo's records tell no names: only Spark reads them, with the application's classes, and "
        "that runs code of whoever wrote this folder.",
        "If you trust them: --trust, with --conf spark.jars=APP.jar for classes of the "
        "application.",
    )


def _stream(path: str, found: DStreamsCheckpoint, wanted: int) -> int:
    if found.restart_file is None:
        raise CannotRead(
            f"{path}: none of its checkpoint files can be read",
            "They tell which saved RDD is whose state.",
            f"floodmark doctor {shlex.quote(path)}",
        )
    states, unsaved = found.state_streams, found.unsaved_streams
    if wanted in states:
        return wanted
    if wanted in unsaved:
        raise NoAnswer(
            f"{path}: the state of stream {wanted} is not saved yet",
            f"It is a {found.streams[wanted].kind} whose first save is still to come.",
            f"Streams with a saved state: {found.named_streams(states) or 'none'}.",
        )
    if not states:
        raise NoAnswer(
            f"{path}: no stream of this application has saved a state",
            "updateStateByKey, mapWithState and windows save one at their checkpoint interval.",
            f"`floodmark inspect {shlex.quote(path)}` shows the streams.",
        )
    # Left out, it is 0; which state is meant is clear only where no other stream has one.
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
            f"Saved are those after: {times}.",
            "Choose one of them, or leave --batch out for the newest.",
        )
    named_at = ", ".join(found.streams[stream].rdds.values())
    raise CannotRead(
        f"{path}: the state of stream {stream} is not in this folder, or not whole",
        f"The application names {named_at}.",
        f"floodmark doctor {shlex.quote(path)}",
    )
