"""Makes every scenario that this Spark supports. Run by scripts/make_golden.py, not by hand."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import partial

from pyspark.sql import SparkSession
from scripts.golden.catalogue import ALONE, KILLED, SCENARIOS
from scripts.golden.drive import make, make_killed, spark_version
from scripts.golden.dstreams import make_dstreams
from scripts.golden.dstreams_scala import make_dstreams_scala
from scripts.golden.session import session
from scripts.golden.unending import ASYNC, CLOCKED, CONTINUOUS, make_async, make_continuous

Makers = dict[str, Callable[[], None]]


def main(wanted: list[str]) -> int:
    spark = session()
    failed = []
    alone = {scenario.name for scenario in ALONE}
    for name, maker in _makers(spark).items():
        chosen = name in wanted if wanted else name not in alone
        if not chosen:
            continue
        print(f"{spark.version}  {name}", flush=True)
        try:
            maker()
        except Exception:
            traceback.print_exc()
            failed.append(name)
    spark.stop()
    if failed:
        print(f"{spark.version}  failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _makers(spark: SparkSession) -> Makers:
    version = spark_version(spark)
    makers: Makers = {scenario.name: partial(make_killed, spark, scenario) for scenario in KILLED}
    for scenario in (*SCENARIOS, *CLOCKED, *ALONE):
        if scenario.runs_on(version):
            makers[scenario.name] = partial(make, spark, scenario)
    makers[ASYNC.name] = partial(make_async, spark)
    makers[CONTINUOUS.name] = partial(make_continuous, spark)
    makers["dstreams"] = partial(make_dstreams, spark)
    if version == (4, 2):
        makers["dstreams-scala"] = partial(make_dstreams_scala, spark)
    return makers


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
