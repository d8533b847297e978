"""Asks a later Spark for the state of kept checkpoints whose own Spark has no reader for it.

3.5 has no `statestore` source at all, and 4.0's cannot read unique ids.
"""

from __future__ import annotations

import json
import shutil

from scripts.golden.catalogue import KILLED, SCENARIOS
from scripts.golden.drive import settings, write_expected
from scripts.golden.place import ROOT, Place
from scripts.golden.session import session
from scripts.golden.testimony import state_rows


def main() -> None:
    spark = session()
    # The reader looks for a coordinator that only touching the streams starts.
    _ = spark.streams.active
    for scenario in (*KILLED, *SCENARIOS):
        place = Place(scenario.name)
        kept = place.kept / "expected.json"
        if not scenario.stores or not kept.exists():
            continue
        expected = json.loads(kept.read_text(encoding="utf-8"))
        if expected["state_rows"] is not None:
            continue
        copy = ROOT / "read" / scenario.name
        shutil.copytree(place.kept / "checkpoint", copy)
        with settings(spark, scenario.conf):
            expected["state_rows"] = state_rows(spark, copy, scenario.stores)
        expected["state_rows_by"] = spark.version
        write_expected(place, expected)
    spark.stop()


if __name__ == "__main__":
    main()
