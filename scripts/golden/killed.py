"""Runs the KILLED scenarios and dies in the middle of a batch of each, by SIGKILL.

A process of its own: nothing of Spark may get the chance to tidy up.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from scripts.golden.catalogue import KILLED, totals, written
from scripts.golden.place import Place
from scripts.golden.scenario import Scenario
from scripts.golden.session import session
from scripts.golden.testimony import batch_of, progress_of

# scenario → the batch that it dies in, and whether that batch's job has run by then.
DEATHS = {"in-flight": (2, False), "in-flight-state": (2, True), "in-flight-first": (0, False)}


def main() -> None:
    spark = session()
    doomed = [_start(spark, scenario) for scenario in KILLED]
    for scenario, query, reached in doomed:
        if not reached.wait(timeout=120):
            raise TimeoutError(f"{scenario.name} did not come to its batch: {query.exception()}")
    for scenario, query, _ in doomed:
        seen = {
            "query_id": query.id,
            "killed_batch": DEATHS[scenario.name][0],
            "batches": [batch_of(progress) for progress in progress_of(query)],
        }
        (Place(scenario.name).folder / "seen.json").write_text(json.dumps(seen))
    jvm: int = spark._jvm.java.lang.ProcessHandle.current().pid()
    os.kill(jvm, signal.SIGKILL)
    os._exit(0)


def _start(spark: SparkSession, scenario: Scenario) -> tuple[Scenario, Any, threading.Event]:
    place, reached = Place(scenario.name), threading.Event()
    last, after_its_job = DEATHS[scenario.name]
    place.clear()
    for run in scenario.runs:
        for source, files in run.files.items():
            place.write(source, files)

    def stop_in_the_middle(frame: DataFrame, batch: int) -> None:
        if batch < last or after_its_job:
            written(frame, batch)
        if batch == last:
            reached.set()
            threading.Event().wait()

    writer = totals(spark, place).writeStream.outputMode("update").foreachBatch(stop_in_the_middle)
    query = (
        writer.option("checkpointLocation", str(place.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    return scenario, query, reached


if __name__ == "__main__":
    main()
