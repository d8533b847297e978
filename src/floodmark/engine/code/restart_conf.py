"""Asks Spark with which settings it restarts a query from the settings that a checkpoint pins.

An older Spark pinned fewer settings. For some of those that are missing, Spark takes a value of
its own, and not the session's: version 1 of the state of aggregations and joins, for example.
The list differs by Spark version, so this module asks the Spark that runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS


def restart_conf(spark: Any, pinned: Mapping[str, str] | None) -> dict[str, str]:
    """Return the pinned settings with those that Spark adds; nothing for a query that is new."""
    if pinned is None:
        return {}
    # Spark stores the number of partitions under another key of the session as well.
    conf = {key: value for key, value in pinned.items() if key != SHUFFLE_PARTITIONS}
    return {**_set_by_spark(spark, conf), **pinned}


def _set_by_spark(spark: Any, conf: Mapping[str, str]) -> dict[str, str]:
    """Return what Spark sets in a session without settings, before it continues a query."""
    from py4j.protocol import Py4JError

    session = spark._jsparkSession.cloneSession()
    settings = session.sessionState().conf()
    settings.clear()
    kind = _metadata_class(spark)
    entry = kind.apply(json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": conf}))
    try:
        kind.setSessionConf(entry, settings)
    except Py4JError:  # Spark 3.5 wants the session's own view of its settings
        kind.setSessionConf(entry, session.conf())
    pairs = settings.getAllConfs().iterator()
    found = {}
    while pairs.hasNext():
        pair = pairs.next()
        found[str(pair._1())] = str(pair._2())
    return found


def _metadata_class(spark: Any) -> Any:
    from py4j.java_gateway import JavaClass

    streaming = spark._jvm.org.apache.spark.sql.execution.streaming
    found = streaming.checkpointing.OffsetSeqMetadata  # since Spark 4.1
    return found if isinstance(found, JavaClass) else streaming.OffsetSeqMetadata
