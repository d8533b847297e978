"""Reads the records of one source's batch, so that a fork can read any part of them again.

`Rows` are what Spark reads from the source between the batch's offsets, kept in a folder;
`WholeFiles` are the files of the source's own log; `Lines` are cut out of such files.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from floodmark.addresses import public_url
from floodmark.checkpoint.layout import COMMITS, METADATA, OFFSETS, SOURCES
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.offsets import render_offsets
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.text import shorten
from floodmark.connectors.files.file_log import files_between
from floodmark.connectors.files.input_files import Taken, input_files
from floodmark.connectors.files.live import read_source_log
from floodmark.engine.bisect.search import Ranges
from floodmark.engine.code.empty_leaves import as_leaf, frame_of, schema_of
from floodmark.engine.code.query import Query, Source
from floodmark.engine.code.rehearse import run_batch
from floodmark.rules.restarts.rehearsal import Rehearsal
from floodmark.storage.files import Files

TRIAL_SECONDS = 6 * 3600.0
_LINES = frozenset({"csv", "json", "text"})
_NO_OPTIONS = re.compile(
    "path|pathglobfilter|recursivefilelookup|modified(before|after)|max.*|clean.*|latestfirst"
    "|sourcearchivedir|filenameonly|compression|basepath"
)


@dataclass(frozen=True)
class NamedRecord:
    """One record, with the name under which its owner finds it."""

    source: str
    """The id of its source."""
    words: str
    """A sentence that says where the record is."""
    topic: str | None = None
    """The Kafka topic."""
    partition: int | None = None
    """The Kafka partition."""
    offset: int | None = None
    """The Kafka offset."""
    key: str | None = None
    """The key of the Kafka record."""
    file: str | None = None
    """The file, for sources that read files or tables."""
    line: int | None = None
    """The number of the line; the first is 1, as in editors."""
    row: int | None = None
    """The number of the row in the file, or in the batch where there is no file; the first is 1."""


@dataclass(frozen=True)
class Given:
    """The input of a source in one trial: a leaf of the plan, and the files that it reads."""

    leaf: Any
    files: tuple[str, ...]


class BatchRecords(Protocol):
    @property
    def count(self) -> int: ...

    def give(self, ranges: Ranges, folder: Path) -> Given: ...

    def name(self, number: int) -> NamedRecord: ...


@dataclass(frozen=True)
class RecordPlace:
    """One source of the query, and its place in the checkpoint."""

    session: Any
    leaf: Any
    source: Source
    id: str
    """The source's key in the offset log."""
    position: int
    folder: str
    """The source's folder below sources/."""

    @property
    def words(self) -> str:
        return f"source {self.id} ({self.source.kind})"

    def read(self, kind: str, options: Mapping[str, str], folder: Path, schema: Any) -> Any:
        reader = self.session.readStream.format(kind).schema(schema).options(**options)
        if self.source.name is not None:
            reader = reader.name(self.source.name)
        return reader.load(f"file://{folder}")


class Rows:
    """The rows of a batch from any source, as Spark reads them, in a folder of Parquet files."""

    def __init__(self, place: RecordPlace, folder: Path) -> None:
        self._place = place
        self._folder = folder
        self._rows = place.session.read.parquet(f"file://{folder}")
        self._files = tuple(f"file://{one}" for one in sorted(folder.glob("*.parquet")))
        self.count = int(self._rows.count())

    def give(self, ranges: Ranges, folder: Path) -> Given:
        frame = self._place.read("parquet", {}, self._folder, self._rows.schema)
        chosen = " OR ".join(f"n >= {first} AND n < {end}" for first, end in ranges)
        frame = frame.where(chosen or "n < 0").drop("n", "in_file", "file")
        return Given(as_leaf(self._place.session, self._place.leaf, frame), self._files)

    def name(self, number: int) -> NamedRecord:
        row = self._rows.where(f"n = {number}").first()
        words = self._place.words
        if self._place.source.kind == "kafka":
            columns = dict(zip(schema_of(self._place.leaf).names, row, strict=False))
            key = columns.get("key")
            shown = None if key is None else shorten(bytes(key).decode(errors="replace"))
            at = f"{columns['topic']}, partition {columns['partition']}, offset {columns['offset']}"
            return NamedRecord(
                self._place.id,
                f"{words}: topic {at}, " + ("no key" if key is None else f"key {shown!r}"),
                str(columns["topic"]),
                int(columns["partition"]),
                int(columns["offset"]),
                shown,
            )
        nth = int(row["in_file"])
        if not row["file"]:
            return NamedRecord(self._place.id, f"{words}: row {nth} of the batch", row=nth)
        file = public_url(str(row["file"]))
        return NamedRecord(self._place.id, f"{words}: {file}, row {nth}", file=file, row=nth)


def capture(
    place: RecordPlace, query: Query, fork: Files, checkpoint: Checkpoint, batch: int, folder: Path
) -> Rows | Rehearsal:
    """Read the batch's range of one source, alone, with Spark; return the error if that fails."""
    from pyspark.sql import Window, functions

    alone = folder / "alone"
    entries = {one: checkpoint.offsets[one] for one in (batch - 1, batch) if one >= 0}
    for number, entry in entries.items():
        own = replace(entry, offsets=(entry.offsets[place.position],))
        put(alone / OFFSETS / str(number), render_offsets(own))
    put(alone / METADATA, json.dumps({"id": str(uuid.uuid4())}).encode())
    own_log = f"{SOURCES}/{place.folder}/"
    for path in (RelativePath(file.path) for file in fork.list().files):
        if path.startswith(own_log):
            name = place.folder if place.source.name else "0"
            put(alone / SOURCES / name / path[len(own_log) :], fork.read(path))
        elif path == f"{COMMITS}/{batch - 1}":
            put(alone / path, fork.read(path))
    frame = frame_of(place.session, place.leaf)
    columns = [f"c{number}" for number in range(len(frame.columns))]
    frame = frame.toDF(*columns).withColumn("file", functions.input_file_name())
    frame = frame.withColumn("block", functions.expr("input_file_block_start()"))

    def keep(rows: Any, _batch_id: int) -> None:
        raw = rows.withColumn("at", functions.monotonically_increasing_id())
        raw.write.parquet(f"file://{folder}/raw")

    writer = frame.writeStream.foreachBatch(keep)
    ran = run_batch(writer, query, alone, batch, True, TRIAL_SECONDS)
    if ran is None or not ran.ran:
        return ran or Rehearsal(False, batch, True, None, "the source gave no batch")
    order = ["file", "block", "at"]
    if place.source.kind == "kafka":  # topic, partition, offset
        order = ["c2", "c3", "c4"]
    numbers = functions.row_number().over(Window.orderBy(*order)) - 1
    in_file = functions.row_number().over(Window.partitionBy("file").orderBy(*order))
    rows = place.session.read.parquet(f"file://{folder}/raw")
    rows = rows.withColumn("n", numbers.cast("long")).withColumn("in_file", in_file)
    rows.select(*columns, "n", "in_file", "file").write.parquet(f"file://{folder}/rows")
    return Rows(place, folder / "rows")


@dataclass(frozen=True)
class Some:
    """Chosen records out of other records."""

    records: BatchRecords
    numbers: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.numbers)

    def give(self, ranges: Ranges, folder: Path) -> Given:
        chosen = (self.numbers[at] for first, end in ranges for at in range(first, end))
        return self.records.give(tuple((one, one + 1) for one in chosen), folder)

    def name(self, number: int) -> NamedRecord:
        return self.records.name(self.numbers[number])


class WholeFiles:
    """The files of a file source: its own leaf reads those that a trial chooses."""

    def __init__(
        self, place: RecordPlace, files: Files, checkpoint: Checkpoint, batch: int
    ) -> None:
        self.place = place
        seen = read_source_log(files, checkpoint, place.folder)
        taken = input_files(checkpoint, {place.id: seen})
        ids = {one.log_id for one in taken if one.taken is Taken.BY_BATCH and one.batch == batch}
        own = files_between(seen, min(ids) - 1, max(ids)) if ids else ()
        self.files = tuple(file.path for file in own)
        self.readable = tuple(file.readable_path for file in own)
        self.count = len(self.files)

    def give(self, ranges: Ranges, folder: Path) -> Given:
        chosen = [self.files[one] for first, end in ranges for one in range(first, end)]
        return Given(self.place.leaf, tuple(chosen))

    def name(self, number: int) -> NamedRecord:
        path = public_url(self.readable[number])
        return NamedRecord(self.place.id, f"{self.place.words}: {path}", file=path)

    @property
    def have_lines(self) -> bool:
        options = self.place.source.options
        whole = any(options.get(key, "").lower() == "true" for key in ("multiline", "wholetext"))
        encoding = options.get("encoding", options.get("charset", "utf-8")).lower()
        return (
            self.place.source.kind in _LINES
            and not whole
            and encoding.replace("_", "-") in ("utf-8", "utf8", "us-ascii")
        )


class Lines:
    """Lines of a source's text files, in copies that keep the files' partition folders."""

    def __init__(self, whole: WholeFiles, chosen: Sequence[int]) -> None:
        self._place = whole.place
        options, kind = whole.place.source.options, whole.place.source.kind
        self._end = options.get("linesep", "\n").encode()
        self._files = [whole.readable[number] for number in chosen]
        self._lines = [self._read(path) for path in self._files]
        header = kind == "csv" and options.get("header", "").lower() == "true"
        self._above = [lines[:header] for lines in self._lines]
        # An empty line is no record, but it counts in the line numbers that a person sees.
        self._records = [
            (file, line)
            for file, lines in enumerate(self._lines)
            for line in range(header, len(lines))
            if lines[line].strip() or kind == "text"
        ]
        self.count = len(self._records)

    def _partitions(self, path: str) -> list[str]:
        """Return the folders above a file that are partition columns of the source."""
        columns = {name.lower() for name in schema_of(self._place.leaf).names}
        found = [part.partition("=") for part in path.split("/")[:-1]]
        return ["".join(one) for one in found if one[1] and one[0].lower() in columns]

    def _read(self, path: str) -> list[bytes]:
        reader = self._place.session.read.format("text")
        if "linesep" in self._place.source.options:
            reader = reader.option("lineSep", self._place.source.options["linesep"])
        exact = re.sub(r"([\[\]{}*?\\])", r"\\\1", path)  # not a pattern
        rows = reader.load(exact).selectExpr(
            "input_file_block_start() AS block",
            "monotonically_increasing_id() AS at",
            "CAST(value AS BINARY) AS line",
        )
        return [bytes(row["line"]) for row in rows.orderBy("block", "at").collect()]

    def give(self, ranges: Ranges, folder: Path) -> Given:
        chosen: dict[int, list[bytes]] = {}
        for first, end in ranges:
            for file, line in self._records[first:end]:
                chosen.setdefault(file, []).append(self._lines[file][line])
        made = []
        # The source needs a file to read, so a trial without lines gets a file without records.
        for file, lines in (chosen or {0: []}).items():
            copy = folder.joinpath(*self._partitions(self._files[file]), f"{file:06}.lines")
            put(copy, b"".join(one + self._end for one in (*self._above[file], *lines)))
            made.append(f"file://{copy}")
        return Given(self._leaf(folder), tuple(made))

    def _leaf(self, folder: Path) -> Any:
        from pyspark.sql.types import StructType

        source, leaf = self._place.source, self._place.leaf
        schema = schema_of(leaf)
        hidden = [name for name in schema.names if name == "_metadata"]
        own = StructType([one for one in schema.fields if one.name not in hidden])
        options = {k: v for k, v in source.options.items() if not _NO_OPTIONS.fullmatch(k)}
        frame = self._place.read(source.kind, options, folder, own).select("*", *hidden)
        return as_leaf(self._place.session, leaf, frame)

    def name(self, number: int) -> NamedRecord:
        file, line = self._records[number]
        path = public_url(self._files[file])
        words = f"{self._place.words}: {path}, line {line + 1}"
        return NamedRecord(self._place.id, words, file=path, line=line + 1)


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
