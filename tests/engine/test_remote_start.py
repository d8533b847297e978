"""`floodmark.start` through Spark Connect: what works, and what is refused with a sentence.

The client is another process, as everywhere: one that has a classic session can have no other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import floodmark

if TYPE_CHECKING:
    from services.connect import ConnectServer

pytestmark = [pytest.mark.spark, pytest.mark.services]

CLIENT = """
import json, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
import pyspark.sql.functions as F
import floodmark
from floodmark import once
from floodmark.errors import FloodmarkError

url, root = sys.argv[1], Path(sys.argv[2])
spark = SparkSession.builder.remote(url).getOrCreate()

def feed(*numbers):
    (root / "orders").mkdir(exist_ok=True)
    for n in numbers:
        (root / "orders" / f"{n}.json").write_text(json.dumps({"customer": f"c{n % 3}", "paid": n}))

def totals(agg=F.sum, mode="complete"):
    rows = spark.readStream.schema("customer STRING, paid LONG").json(str(root / "orders"))
    summed = rows.groupBy("customer").agg(agg("paid").alias("total"))
    return summed.writeStream.outputMode(mode).format("memory")

def ended(writer, name, **more):
    query = floodmark.start(
        writer.trigger(availableNow=True).queryName(name), root / "ck", name="sales", **more
    )
    assert query.awaitTermination(300)
    if query.exception() is not None:
        raise query.exception()
    rows = spark.table(name).collect()
    return {row["customer"]: row["total"] for row in rows}

def refused(work):
    try:
        work()
    except FloodmarkError as error:
        return [type(error).__name__, str(error)]
    return None

told = {}
feed(*range(1, 7))
told["first"] = ended(totals(), "first")
# Complete mode in memory goes on over the same checkpoint.
feed(7, 8)
told["second"] = ended(totals(), "second")
told["changed"] = refused(lambda: ended(totals(agg=F.max), "third"))
feed(9)  # a start that runs no batch does not make the state its own
told["allowed"] = ended(totals(agg=F.max), "fourth", allow=["unjudged-remote-plan"])
told["known"] = refused(lambda: ended(totals(agg=F.max), "fifth"))

running = floodmark.start(totals(agg=F.max).queryName("sixth"), root / "ck")
told["in_use"] = refused(lambda: floodmark.start(totals(agg=F.max), root / "ck"))
lease = root / "ck" / "_floodmark" / "lease.json"
told["leased"] = lease.exists()
running.stop()

try:
    totals(mode="update").foreachBatch(once.delta(str(root / "delta")))
    told["once"] = None
except Exception as error:
    told["once"] = str(error)
deadline = time.monotonic() + 300
lines = root / "ck" / "_floodmark" / "progress.jsonl"
while not lines.exists() and time.monotonic() < deadline:
    time.sleep(0.2)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def connect() -> Iterator[ConnectServer]:
    from services.connect import ConnectServer

    with ConnectServer() as server:
        yield server


def test_a_query_of_a_remote_session(connect: ConnectServer, tmp_path: Path) -> None:
    client = tmp_path / "client.py"
    client.write_text(CLIENT)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(client), connect.url, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={key: value for key, value in os.environ.items() if key != "SPARK_REMOTE"},
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{connect.last_words()}"
    told = json.loads(done.stdout.splitlines()[-1])

    def oracle(*numbers: int) -> dict[str, int]:
        found: dict[str, int] = {}
        for number in numbers:
            found[f"c{number % 3}"] = found.get(f"c{number % 3}", 0) + number
        return found

    assert told["first"] == oracle(*range(1, 7))
    assert told["second"] == oracle(*range(1, 9))
    assert told["changed"][0] == "Refused"
    assert "floodmark cannot know" in told["changed"][1]
    assert "unjudged-remote-plan" in told["changed"][1]
    assert told["known"] is None, "what was allowed once is the known plan"
    assert told["in_use"][0] in ("InUse", "Refused")
    assert "in use" in told["in_use"][1]
    assert told["leased"]
    assert "Cannot serialize the function `foreachBatch`" in told["once"], "Spark's own refusal"

    checkpoint = tmp_path / "ck"
    note = json.loads(sorted((checkpoint / "_floodmark" / "starts").glob("*.json"))[0].read_text())
    assert (note["pipeline"], note["sink"], note["output_mode"]) == ("sales", "memory", "complete")
    assert [one["kind"] for one in note["sources"]] == ["json"]
    assert len(note["remote_plan"]) == 64
    lines = (checkpoint / "_floodmark" / "progress.jsonl").read_text().splitlines()
    assert {json.loads(line)["batch"] for line in lines} >= {0, 1}
    assert floodmark.inspect(str(checkpoint)).committed_batch >= 1
