"""A DStreams state becomes a value of transformWithState."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

import floodmark
import samples
from floodmark.engine.dstreams import leaving
from floodmark.errors import NoAnswer
from floodmark.state.files.compression import decompress
from rules.examples import golden

WORDS = """
import json
from floodmark import pipeline
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

class Counting(StatefulProcessor):
    def init(self, handle):
        self.seen = handle.getValueState("seen", "n long")

    def handleInputRows(self, key, rows, timer):
        import pandas as pd

        before = int(self.seen.get()[0]) if self.seen.exists() else 0
        now = before + sum(len(chunk) for chunk in rows)
        self.seen.update((now,))
        yield pd.DataFrame({{"word": [key[0]], "n": [now]}})

    def close(self):
        pass

def store(frame, batch):
    with open("{root}/counts.json", "w") as out:
        json.dump({{row.word: row.n for row in frame.collect()}}, out)

CONF = {{
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass":
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}}

@pipeline(checkpoint="{root}/new", conf=CONF)
def counts(spark, start):
    lines = spark.readStream.text("{root}/in")
    words = lines.select(F.explode(F.split("value", " ")).alias("word"))
    counted = words.groupBy("word").transformWithStateInPandas(
        Counting(), "word STRING, n LONG", "Update", "None"
    )
    return counted.writeStream.outputMode("update").foreachBatch(store)
"""


def _moved(tmp_path: Path, name: str, newest: str) -> Path:
    """The golden folder, of an application that reads the test's own folder."""
    tree = golden(f"4.2/{name}")
    content = decompress(tree[newest])
    old, new = f"/tmp/floodmark-golden/{name}/in".encode(), str(tmp_path / "in").encode()
    files = (b"", b"/lines.txt", b"/0.csv", b"/1.csv")
    for text in (lead + b"%s" + file for lead in (b"", b"file:") for file in files):
        before, after = text % old, text % new
        content = content.replace(
            struct.pack(">H", len(before)) + before, struct.pack(">H", len(after)) + after
        )
    assert old not in content
    (tmp_path / "in").mkdir()
    return samples.write(tmp_path / "cp", {**tree, newest: content})


def test_a_state_without_a_key_is_refused(tmp_path: Path) -> None:
    """The advice must not lead to a query that reads everything again."""
    with pytest.raises(NoAnswer) as refused:
        leaving._write([], str(tmp_path / "rows.parquet"))
    assert "would read the whole input" in str(refused.value)
    assert "Run the old application until it has saved a key" in str(refused.value)
    assert not (tmp_path / "rows.parquet").exists()


@pytest.mark.spark
@pytest.mark.soak
def test_word_counts_go_on_in_transform_with_state(spark: Any, tmp_path: Path) -> None:
    place = _moved(tmp_path, "dstreams", "checkpoint-1794737452000")
    app = tmp_path / "app.py"
    app.write_text(WORDS.format(root=tmp_path))
    new = str(tmp_path / "new")
    floodmark.leave_dstreams(str(place), new, app=str(app), operator="0/seen", execute=True)
    (tmp_path / "in" / "more.txt").write_text("flood water\nflood\n")
    floodmark.run(f"{app}:counts", available_now=True)
    expected = json.loads(
        (Path(__file__).parents[1] / "golden/4.2/dstreams/expected.json").read_text()
    )["counts"]
    found = json.loads((tmp_path / "counts.json").read_text())
    assert found == {"flood": expected["flood"] + 2, "water": expected.get("water", 0) + 1}
    held = {
        row["key"]["word"]: row["value"]["n"]
        for row in floodmark.read_state(new, store="seen").rows()
    }
    assert held == {**expected, **found}
