"""Settings that a later Spark pins and an earlier one ignores."""

from __future__ import annotations

import pytest

from broken.meeting import CONF, meeting
from floodmark.rules.restarts.reason import Verdict
from floodmark.rules.restarts.verdict import judge_restart


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.dropDuplicates.deterministicKeyOrder.enabled",
        "spark.sql.streaming.statefulOperator.alwaysNullableOutput.enabled",
    ],
)
@pytest.mark.parametrize(
    ("spark", "value", "stops"),
    [("4.2.0", "true", True), ("4.2.0", "false", False), ("4.3.0", "true", False)],
)
def test_what_4_3_pins_stops_an_earlier_spark(
    key: str, spark: str, value: str, stops: bool
) -> None:
    judged = judge_restart(meeting(pins={**CONF, key: value}, new={"spark_version": spark}))
    found = [one for one in judged.reasons if one.rule == "spark-downgraded" and key in one.what]
    assert bool(found) is stops
    assert all(one.verdict is Verdict.NEEDS_NEW_CHECKPOINT for one in found)
