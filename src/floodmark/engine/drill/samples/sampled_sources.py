"""Gives a sample to a drilled query instead of its sources.

A folder replaces files or a Delta table, and a topic replaces a topic. Lines of a file replace
any source, also Kafka, as JSON rows with the columns of the source.
"""

from __future__ import annotations

import base64
import inspect
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from floodmark.connectors.delta.offset import TABLE_LOG
from floodmark.connectors.files.offset import FILE_SOURCES
from floodmark.connectors.kafka.offset import SERVERS
from floodmark.engine.app.patching import Patches
from floodmark.engine.drill.samples.input_sample import InputSample
from floodmark.engine.spark.scala import jvm_field, scala_map
from floodmark.errors import WrongUse

PORTIONS = 4
"""The number of batches that a sample makes, if it can be cut."""
KAFKA_COLUMNS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "timestampType INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
_METHODS = ("load", "json", "orc", "parquet", "text", "csv", "xml", "table")
_STARTS = frozenset(
    {"assign", "subscribe", "subscribepattern", "startingoffsets", "startingoffsetsbytimestamp"}
    | {"startingtimestamp", "startingversion", "minoffsetspertrigger", "maxtriggerdelay"}
    | {"maxfilespertrigger", "maxbytespertrigger", "maxoffsetspertrigger", "cleansource", "path"}
    | {"latestfirst", "maxfileage", "schematrackinglocation", "sourcearchivedir"}
    | {"startingoffsetsbytimestampstrategy", "failondataloss", "groupidprefix", "kafka.group.id"}
)
"""Options that say where a source begins and how much a batch takes: the drill decides both."""


def write_portions(lines: Sequence[str], folder: Path, number: int = PORTIONS) -> None:
    """Cut lines into this number of files, after the files that are already there."""
    folder.mkdir(parents=True, exist_ok=True)
    first = sum(1 for _ in folder.iterdir())
    size = max(1, math.ceil(len(lines) / number))
    for at in range(0, len(lines), size):
        text = "".join(f"{line}\n" for line in lines[at : at + size])
        (folder / f"{first + at // size:05d}").write_text(text, "utf-8")


class SampledSources:
    def __init__(self, inputs: tuple[InputSample, ...], shared: Path) -> None:
        self._inputs = inputs
        self._shared = shared
        self.kinds: list[str] = []

    def replace_sources(self, patches: Patches) -> None:
        from pyspark.sql.streaming.readwriter import DataStreamReader

        load = DataStreamReader.load
        for name in _METHODS:
            patches.wrap(DataStreamReader, name, self._reading(name, load))

    def require_all_read(self) -> None:
        if len(self.kinds) < len(self._inputs):
            read = "1 stream" if len(self.kinds) == 1 else f"{len(self.kinds)} streams"
            raise WrongUse(
                f"--input is given {len(self._inputs)} times, and the code reads {read}",
                do="Give one --input for each stream that the code reads, in its order.",
            )

    def _reading(self, name: str, load: Any) -> Callable[[Any], Any]:
        def wrapper(original: Any) -> Any:
            def read(self_: Any, *given: Any, **named: Any) -> Any:
                bound = inspect.signature(original).bind(self_, *given, **named).arguments
                bound.pop("self", None)
                return self._replaced(self_, name, bound, load)

            return read

        return wrapper

    def _replaced(self, reader: Any, method: str, told: dict[str, Any], load: Any) -> Any:
        place = told.pop("path", None) or told.pop("tableName", None)
        schema = told.pop("schema", None) or _schema_of(reader)
        kind = told.pop("format", None) or method
        options = scala_map(jvm_field(reader._jreader, "extraOptions"))
        if method == "load" and kind == "load":
            kind = str(jvm_field(reader._jreader, "source") or "parquet")
        elif method == "table":
            kind = "delta"
        options |= {
            key.lower(): str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in {**told.pop("options", {}), **told}.items()
            if value is not None
        }
        place = place or options.get("path")
        kind = kind.lower().rpartition(".")[2]
        source = _Source(reader._spark, kind, place, schema, options, len(self.kinds), load)
        self.kinds.append(kind)
        if source.number >= len(self._inputs):
            raise WrongUse(
                f"the code reads {source.words}, and no --input is given for it",
                "The drill gives a sample to each stream that the code reads, in the order in "
                "which the code reads them.",
                "Give --input once for each stream.",
            )
        return source.from_input(self._inputs[source.number], self._shared)


def _schema_of(reader: Any) -> Any:
    """Return the schema that the code gave to schema()."""
    found = jvm_field(reader._jreader, "userSpecifiedSchema")
    return None if found is None or found.isEmpty() else str(found.get().toDDL())


class _Source:
    """One stream that the code reads."""

    def __init__(
        self,
        spark: Any,
        kind: str,
        place: str | None,
        schema: Any,
        options: Mapping[str, str],
        number: int,
        load: Any,
    ) -> None:
        self._spark, self._kind, self._place, self._schema = spark, kind, place, schema
        self._options = {key: value for key, value in options.items() if key not in _STARTS}
        self.number = number
        self._load = load

    @property
    def words(self) -> str:
        return f"stream {self.number} ({self._kind})"

    def from_input(self, given: InputSample, shared: Path) -> Any:
        if given.kind == "portions":
            return self._from_lines(given, shared)
        if given.kind == "topic":
            if self._kind != "kafka":
                raise WrongUse(
                    f"--input {given.place} is neither a folder nor a file here, and {self.words} "
                    "does not read Kafka",
                    do="Give a folder with files of the same format, or a file of JSON lines.",
                )
            return self._from_topic(given, shared)
        is_table = Path(given.place, TABLE_LOG).is_dir()
        if is_table != (self._kind == "delta") or self._kind not in (*FILE_SOURCES, "delta"):
            what = "a Delta table" if is_table else "a folder of files"
            raise WrongUse(
                f"--input {given.place} is {what}, and {self.words} cannot be read from it",
                do="Give a folder of the source's own format, or a file of JSON lines.",
            )
        return self._read(self._kind, given.place, self._schema, _per_batch(Path(given.place)))

    def _read(self, kind: str, place: str | None, schema: Any, files: int) -> Any:
        reader = self._spark.readStream.format(kind).options(**self._options)
        if schema is not None and kind != "delta":
            reader = reader.schema(schema)
        return self._load(reader.option("maxFilesPerTrigger", files), place)

    def _from_lines(self, given: InputSample, shared: Path) -> Any:
        if self._kind == "text":
            return self._read("text", str(self._portions(given, shared, str)), None, 1)
        if self._kind == "socket":
            reader = self._spark.readStream.format("socket").options(**self._options)
            return self._load(reader.option("host", "127.0.0.1").option("port", given.port))
        make = _kafka_record if self._kind == "kafka" else str
        folder = self._portions(given, shared, make)
        reader = self._spark.readStream.schema(self._columns(folder))
        rows = self._load(reader.format("json").option("maxFilesPerTrigger", 1), str(folder))
        has_headers = self._kind != "kafka" or self._options.get("includeheaders") == "true"
        return rows if has_headers else rows.drop("headers")

    def _columns(self, folder: Path) -> Any:
        if self._kind == "kafka":
            return KAFKA_COLUMNS
        if self._kind == "rate":
            return "timestamp TIMESTAMP, value BIGINT"
        if self._schema is not None:
            return self._schema
        if self._kind == "delta" and self._place:
            from pyspark.errors import PySparkException

            try:
                if "/" in self._place:
                    return self._spark.read.format("delta").load(self._place).schema
                return self._spark.read.table(self._place).schema
            except PySparkException:
                raise WrongUse(
                    f"{self.words}: its columns are not known, as {self._place} cannot be read",
                    do="Give a Delta table as --input.",
                ) from None
        if self._kind in FILE_SOURCES:
            return self._spark.read.json(str(folder)).schema
        raise WrongUse(
            f"{self.words}: the drill has no sample format for such a source",
            do="A drill supports pipelines that read files, Kafka or Delta tables.",
        )

    def _portions(self, given: InputSample, shared: Path, make: Callable[[str], str]) -> Path:
        """Write the lines as files that the source can read; add portions that are new."""
        folder = shared / f"input-{self.number}"
        folder.mkdir(exist_ok=True)
        for number, raw in enumerate(sorted(Path(given.place).iterdir())):
            path = folder / f"{raw.name}.json"
            if not path.exists():
                beside = shared / f".{raw.name}"
                lines = raw.read_text("utf-8").splitlines()
                beside.write_text("".join(f"{make(line)}\n" for line in lines), "utf-8")
                # A file source puts files in the order of their times.
                os.utime(beside, (1_700_000_000 + number,) * 2)
                beside.rename(path)
        return folder

    def _from_topic(self, given: InputSample, shared: Path) -> Any:
        options = dict(self._options)
        if given.servers is not None:
            options[SERVERS] = given.servers
        options |= {"subscribe": given.place}
        most = shared / f"topic-{self.number}"
        if not most.exists():
            batch = self._spark.read.format("kafka").options(**options).load()
            rows = batch.count()
            if not rows:
                raise WrongUse(
                    f"--input {given.place}: the topic has no records",
                    do="Fill it with a sample first.",
                )
            most.write_text(str(math.ceil(rows / PORTIONS)))
        options |= {
            "startingOffsets": "earliest",
            "failOnDataLoss": "true",
            "maxOffsetsPerTrigger": most.read_text(),
        }
        reader = self._spark.readStream.format("kafka").options(**options)
        return self._load(reader)


def _kafka_record(line: str) -> str:
    """Return a line as a Kafka record: its value, or {"key": …, "value": …, "timestamp": …}."""
    try:
        told = json.loads(line)
    except ValueError:
        told = None
    known = {"key", "value", "timestamp", "topic", "partition", "offset", "headers"}
    if not (isinstance(told, dict) and "value" in told and known.issuperset(told)):
        told = {"value": line}
    record = {"topic": "sample", "partition": 0, "offset": 0, "timestampType": 0, **told}
    record.setdefault("timestamp", "2026-01-01T00:00:00Z")
    for name in ("key", "value"):
        value = record.get(name)
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value)
            record[name] = base64.b64encode(text.encode()).decode()
    return json.dumps(record)


def _per_batch(folder: Path) -> int:
    """Return how many files a batch takes, so that there are about four batches."""
    hidden = ("_", ".")
    found = sum(
        not name.startswith(hidden)
        for at, folders, names in os.walk(folder)
        for name in names
        if not any(part.startswith(hidden) for part in Path(at).relative_to(folder).parts)
    )
    return max(1, math.ceil(found / PORTIONS))
