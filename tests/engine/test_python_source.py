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
import samples
from carried import GO
from floodmark.errors import NoAnswer, WouldLose

pytestmark = pytest.mark.spark

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


HUBS = """\
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader


class Hubs(DataSource):
    @classmethod
    def name(cls):
        return {kind!r}

    def schema(self):
        return "body STRING"

    def streamReader(self, schema):
        return DataSourceStreamReader()


spark = SparkSession.builder.getOrCreate()
spark.dataSource.register(Hubs)
writer = spark.readStream.format({kind!r}).load().writeStream.format("noop")
writer.option("checkpointLocation", {checkpoint!r}).start().awaitTermination()
"""


def test_the_application_tells_event_hubs_from_kafka(spark: Any, tmp_path: Path) -> None:
    """Both write `{"orders":{"0":23}}`, and only Kafka takes its first offsets as Kafka does."""
    tree = samples.logs(range(3), range(3), offset=lambda batch: '{"orders":{"0":23}}')
    cp = samples.write(tmp_path / "cp", tree)
    app = tmp_path / "hubs.py"
    app.write_text(HUBS.format(kind="eventhubs", checkpoint=str(cp)))
    assert [source.kind for source in floodmark.inspect(str(cp)).sources] == ["kafka"]
    asked: dict[str, Any] = {"without_state": True, "accept": ("maybe-running", "repeats")}

    unsaid = floodmark.upgrade(str(cp), str(tmp_path / "new"), **asked).plan
    assert "sources/0/0" in {step.path for step in unsaid.steps}
    told = floodmark.upgrade(str(cp), str(tmp_path / "new"), app=str(app), **asked).plan
    assert "sources/0/0" not in {step.path for step in told.steps}
    assert any("source 0 (eventhubs) is given its place by the code" in one for one in told.notes)
    said = floodmark.upgrade(
        str(cp), str(tmp_path / "new"), source_kinds={"0": "eventhubs"}, **asked
    ).plan
    assert [step.path for step in said.steps] == [step.path for step in told.steps]

    judged = floodmark.check(str(cp), str(app))
    assert "source-kind-changed" not in {reason.rule for reason in judged.reasons}
    note = {"sources": [{"kind": "kafka", "options": {}}], "next_batch": 0}
    samples.write(cp, {"_floodmark/starts/1.json": json.dumps(note).encode()})
    with pytest.raises(WouldLose, match=r"Source 0 is eventhubs in the new code; .* is kafka's"):
        floodmark.upgrade(str(cp), str(tmp_path / "new"), app=str(app), **asked)
    judged = floodmark.check(str(cp), str(app))
    assert "source-kind-changed" in {reason.rule for reason in judged.reasons}
