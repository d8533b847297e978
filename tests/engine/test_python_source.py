"""A data source written in Python, for real: its stream is inspected, moved, migrated, and goes on.

Its offsets have Kafka's form on purpose, `{"offset": {"0": 5}}`: only the spaces that Python
writes tell the two apart.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import floodmark
from floodmark.changes.apply import Carrying
from floodmark.changes.in_use import Clock
from floodmark.errors import NoAnswer

pytestmark = pytest.mark.spark

GO = Carrying(execute=True, clock=Clock(pause=lambda seconds: None))
APP = """\
from pyspark.sql import SparkSession, functions
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

INPUT, OUTPUT, CHECKPOINT = {input!r}, {output!r}, {checkpoint!r}


class Lines(DataSourceStreamReader):
    def initialOffset(self):
        return {{"offset": {{"0": 0}}}}

    def latestOffset(self):
        with open(INPUT) as file:
            return {{"offset": {{"0": sum(1 for _ in file)}}}}

    def partitions(self, start, end):
        return [InputPartition((start["offset"]["0"], end["offset"]["0"]))]

    def read(self, partition):
        first, last = partition.value
        with open(INPUT) as file:
            for number, line in enumerate(file):
                if first <= number < last:
                    name, amount = line.split()
                    yield name, int(amount)


class LinesOfText(DataSource):
    @classmethod
    def name(cls):
        return "lines"

    def schema(self):
        return "name STRING, amount LONG"

    def streamReader(self, schema):
        return Lines()


def kept(frame, batch):
    import json

    with open(OUTPUT, "w") as file:
        json.dump([row.asDict() for row in frame.collect()], file)


spark = SparkSession.builder.getOrCreate()
spark.dataSource.register(LinesOfText)
lines = spark.readStream.format("lines").load()
totals = lines.groupBy("name").agg({aggregates})
writer = totals.writeStream.outputMode("complete").foreachBatch(kept)
query = writer.option("checkpointLocation", CHECKPOINT).trigger(availableNow=True).start()
query.awaitTermination()
"""
SUM = 'functions.sum("amount").alias("total")'
COUNT = 'functions.count("*").alias("many")'


class Stream:
    def __init__(self, folder: Path) -> None:
        self.folder, self.input, self.output = folder, folder / "in.txt", folder / "out.json"
        self.written = 0

    def app(self, checkpoint: Path, *aggregates: str) -> str:
        path = self.folder / f"{checkpoint.name}.py"
        text = APP.format(
            input=str(self.input),
            output=str(self.output),
            checkpoint=str(checkpoint),
            aggregates=", ".join(aggregates),
        )
        path.write_text(text)
        return str(path)

    def feed(self, lines: int) -> None:
        with self.input.open("a") as file:
            for number in range(self.written, self.written + lines):
                file.write(f"c{number % 3} {number}\n")
        self.written += lines

    def run(self, app: str) -> None:
        exec(compile(Path(app).read_text(), app, "exec"), {"__name__": "__main__"})

    def totals(self) -> dict[str, int]:
        return {row["name"]: row["total"] for row in json.loads(self.output.read_text())}

    def wanted(self) -> dict[str, int]:
        totals: dict[str, int] = defaultdict(int)
        for line in self.input.read_text().splitlines():
            name, amount = line.split()
            totals[name] += int(amount)
        return dict(totals)


def test_a_stream_from_python_is_moved_and_migrated(spark: Any, tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    cp, moved, new = tmp_path / "cp", tmp_path / "moved", tmp_path / "new"
    stream.feed(5)
    stream.run(stream.app(cp, SUM))

    # Shown as it is.
    [source] = floodmark.inspect(str(cp)).sources
    assert (source.kind, source.offset) == ("python", {"offset": {"0": 5}})
    assert floodmark.doctor(str(cp)) == ()
    with pytest.raises(NoAnswer) as none:
        _ = floodmark.offsets(str(cp)).starting_offsets
    assert "begins where its own code says" in none.value.why

    # Moved, with the same code.
    floodmark.upgrade(str(cp), str(moved), carrying=GO)
    stream.feed(3)
    old = stream.app(moved, SUM)
    stream.run(old)
    assert stream.totals() == stream.wanted()

    # Back a batch, and then changed code: state and offset are carried, and read on from.
    floodmark.rewind(str(moved), to_batch=0, carrying=GO)
    app = stream.app(new, SUM, COUNT)
    floodmark.migrate(str(moved), str(new), app=app, from_app=old, carrying=GO)
    assert (new / "offsets" / "0").read_text().splitlines()[-1] == '{"offset": {"0": 5}}'
    stream.feed(4)
    stream.run(app)
    assert stream.totals() == stream.wanted()
