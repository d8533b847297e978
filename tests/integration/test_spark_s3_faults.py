"""Spark itself before a store that fails now and then: `run` ends right, or says what happened.

The proxy stands between Spark and a real S3 server. Faults come at random, by a seed: slow
answers, 500, 503, cut bodies, connections that are dropped before and after the server has acted.
After each run that they ended, the next one goes on; the last one is undisturbed, and the sink
then has what a batch query over all input gives.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from s3_stream import TOTAL, Commands, feed, oracle, written

from faults import Choice, Fault
from services.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from services.s3 import S3Server

SEEDS = os.environ.get("FLOODMARK_S3_FAULT_SEEDS", "2026,2027,2028,2029").split(",")
SHARES = (0.02, 0.1, 0.3)
"""Of the requests that meet a fault, one for each round."""
# Hadoop gets over most of it by itself, unless it is told to be less patient.
IMPATIENT = {
    "spark.hadoop.fs.s3a.attempts.maximum": "2",
    "spark.hadoop.fs.s3a.retry.limit": "2",
    "spark.hadoop.fs.s3a.retry.interval": "50ms",
    "spark.hadoop.fs.s3a.retry.throttle.limit": "2",
    "spark.hadoop.fs.s3a.retry.throttle.interval": "50ms",
}
FAILED = (3, 5)
"""The exit statuses of storage that cannot be read, and of a query that stopped midway."""


def drawn(seed: str, share: float) -> Choice:
    rng = random.Random(f"{seed} {share}")
    return lambda *_: rng.choice(list(Fault)) if rng.random() < share else None


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", SEEDS)
def test_spark_behind_a_store_that_fails(seed: str, s3: S3Server, tmp_path: Path) -> None:
    ended: Counter[int] = Counter()
    met: Counter[Fault] = Counter()
    with FaultProxy(s3.port) as proxy:
        conf = {**s3.spark_conf, **IMPATIENT, "spark.hadoop.fs.s3a.endpoint": proxy.endpoint}
        commands = Commands(s3, tmp_path, conf)
        app = commands.write("app.py", TOTAL)
        requests = 0
        for turn, share in enumerate(SHARES):
            feed(commands.orders, *range(10 * turn + 1, 10 * turn + 5))
            with proxy.faulty(drawn(seed, share)):
                status, said = commands.tried(app, "a")
                requests += proxy.seen
                met.update(proxy.faults)
            ended[status] += 1
            assert "Traceback" not in said, said
            assert status in (0, *FAILED), said
            if status == 0:
                assert written(commands.sink) == oracle(commands.orders), said
        feed(commands.orders, 99)
        commands.stream(app, "a")
    faults = ", ".join(sorted(f"{fault.name} {number}" for fault, number in met.items()))
    print(f"\nseed {seed}: {requests} requests, {faults}; ended with {dict(ended)}", flush=True)
