"""A plain DStreams script, killed with SIGKILL while files come, is begun anew or left: sums equal.

floodmark has never run the script: no lease, no note, and Spark's own first checkpoint.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.dstream_campaign import Campaign, wait_until
from engine.drivers import floodmark as command
from floodmark.checkpoint.dstreams.batches import newest_state

PLAIN = """
import json, os
from pyspark import SparkConf, SparkContext
from pyspark.streaming import StreamingContext

def update(paid, total):
    return round(sum(paid) + (total or 0.0), 2)

def show(time, totals):
    found = dict(totals.collect())
    with open("{root}/totals.tmp", "w") as out:
        json.dump(found, out)
    os.replace("{root}/totals.tmp", "{root}/totals.json")

def create():
    conf = SparkConf().setMaster("local[2]").setAppName("plain")
    ssc = StreamingContext(SparkContext(conf=conf.set("spark.ui.enabled", "false")), 1)
    ssc.checkpoint("{root}/cp")
    rows = ssc.textFileStream("{root}/in").map(lambda line: line.split(","))
    totals = rows.map(lambda row: (row[1], float(row[3]))).updateStateByKey(update, 2)
    {interval}
    totals.foreachRDD(show)
    return ssc

ssc = StreamingContext.getOrCreate("{root}/cp", create)
ssc.start()
ssc.awaitTermination()
"""
STRUCTURED = """
import json

from floodmark import pipeline
from pyspark.sql import functions as F

def store(frame, batch):
    with open("{root}/totals.json", "w") as out:
        json.dump({{row.customer: row.total for row in frame.collect()}}, out)

@pipeline(checkpoint="{root}/new", conf={{"spark.sql.shuffle.partitions": "2"}})
def totals(spark, start):
    orders = "id STRING, customer STRING, item STRING, paid DOUBLE"
    rows = spark.readStream.schema(orders).csv("{root}/in")
    sums = rows.groupBy("customer").agg(F.sum("paid").alias("total"))
    return sums.writeStream.outputMode("complete").foreachBatch(store)
"""


class Plain(Campaign):
    def begin(self) -> subprocess.Popen[bytes]:
        with (self.root / "run.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, str(self.root / "plain.py")],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def killed(self, kills: int) -> None:
        """Feeds while it runs, kills it, feeds while it is dead."""
        interval = self.chance.choice(["totals.checkpoint(2)", "totals.checkpoint(5)", ""])
        script = PLAIN.format(root=self.root, interval=interval)
        (self.root / "plain.py").write_text(script)
        for number in range(kills):
            process = self.begin()
            try:
                totals = self.root / "totals.json"
                if number:  # it makes up for what it missed: with more the goal would move
                    wait_until(self.is_equal, f"{self.totals()} is not {self.oracle}", 600)
                else:
                    self.until_there(process, totals)
                    if self.chance.random() < 0.75:  # else it may die before its first save
                        self.until(process, self.has_state)
                self._feed(self.chance.uniform(3, 15))
            finally:
                self.kill(process)
            self._feed(self.chance.uniform(0.2, 2))
        self._feed(11)  # so long a plain script is taken for one that runs
        print(f"{kills} kills, {interval or 'the usual interval'}, {self.files} files")

    def until_there(self, process: subprocess.Popen[bytes], path: Path) -> None:
        """Nothing is fed before the first batch: what lies there then is none of the stream's."""

        def is_there() -> bool:
            assert process.poll() is None, (self.root / "run.log").read_text()[-3000:]
            return path.exists()

        wait_until(is_there, "the script has put nothing out", 600)

    def has_state(self) -> bool:
        if not self.is_founded():
            return False
        inside = self.inside()
        return (
            bool(inside.state_streams)
            and not inside.unsaved_streams
            and all(newest_state(inside, at) for at in inside.state_streams)
        )

    def saved_keys(self) -> int:
        done = command("state", "cp", "--json", cwd=self.root)
        assert done.returncode == 0, done.stdout + done.stderr
        return len(json.loads(done.stdout)["rows"])


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [41, 42, 43, 44])
@pytest.mark.parametrize("way", ["leave", "fresh"])
def test_a_killed_plain_script_is_taken_over(way: str, seed: int, tmp_path: Path) -> None:
    plain = Plain(tmp_path / "plain", seed)
    plain.killed(1 + seed % 2)
    if way == "leave":
        _left(plain)
    else:
        _begun_anew(plain)


def _left(plain: Plain) -> None:
    (plain.root / "structured.py").write_text(STRUCTURED.format(root=plain.root))
    words = ("leave-dstreams", "cp", "new", "--app", "structured.py", "--execute")
    done = command(*words, cwd=plain.root)
    if not plain.has_state() or not plain.saved_keys():
        _refused(done)
        assert not (plain.root / "new").exists()
        print("refused: no key was saved")
        return
    assert done.returncode == 0, done.stdout + done.stderr
    for _ in range(2):
        (plain.root / "totals.json").unlink()
        done = command("run", "structured.py", "--available-now", cwd=plain.root)
        assert done.returncode == 0, done.stdout + done.stderr
        assert plain.is_equal(), f"{plain.totals()} is not {plain.oracle}"
        plain.put()


def _begun_anew(plain: Plain) -> None:
    words = ("run", str(plain.app), "--conf", "spark.ui.enabled=false")
    refused = command(*words, cwd=plain.root)
    assert refused.returncode == 4, refused.stdout + refused.stderr
    assert "no note says which code made this context" in refused.stderr
    if not plain.has_state():
        _refused(command(*words, "--fresh-with-state", cwd=plain.root))
        print("refused: no state was saved")
        return
    for option in (("--fresh-with-state",), ()):
        with (plain.root / "run.log").open("ab") as log:
            code = "from floodmark.cli.main import main; main()"
            process = subprocess.Popen(
                [sys.executable, "-c", code, *words, *option],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            plain.until_batches(process, plain.batches() + 1)
            plain.put()
            wait_until(plain.is_equal, f"{plain.totals()} is not {plain.oracle}", 600)
        finally:
            plain.kill(process)
        plain.put()


def _refused(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode in (1, 3, 4), done.stdout + done.stderr
    assert "saved" in done.stderr
    assert "Traceback" not in done.stderr
