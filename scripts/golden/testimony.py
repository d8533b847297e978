"""What the engine itself says of a query: its progress, its logs, its state readers.

Nothing here is computed by floodmark, or the tests would compare it with itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

Json = dict[str, Any]


def progress_of(query: Any) -> list[Json]:
    """The batches that a query reports, oldest first."""
    return [json.loads(progress.json()) for progress in query._jsq.recentProgress()]


def batch_of(progress: Json) -> Json:
    """One batch in the words of `expected.json`."""
    return {
        "batch": progress["batchId"],
        "input_rows": progress["numInputRows"],
        "watermark_ms": _watermark_ms(progress),
        "sources": [
            {
                "description": source["description"],
                "start_offset": source["startOffset"],
                "end_offset": source["endOffset"],
            }
            for source in progress["sources"]
        ],
        "state": [
            {
                "name": operator["operatorName"],
                "rows": operator["numRowsTotal"],
                "partitions": operator["numShufflePartitions"],
                "store_instances": operator["numStateStoreInstances"],
            }
            for operator in progress["stateOperators"]
        ],
    }


def _watermark_ms(progress: Json) -> int | None:
    text = progress.get("eventTime", {}).get("watermark")
    if text is None:
        return None
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    return round(moment.timestamp() * 1000)


def state_rows(
    spark: SparkSession, checkpoint: Path, stores: Mapping[str, Mapping[str, str]]
) -> dict[str, list[Json]]:
    """Every store's rows by Spark's own reader, sorted."""
    return {
        name: _rows(spark.read.format("statestore").options(**options).load(str(checkpoint)))
        for name, options in stores.items()
    }


def state_metadata(spark: SparkSession, checkpoint: Path) -> list[Json]:
    return _rows(spark.read.format("state-metadata").load(str(checkpoint)))


def _rows(frame: Any) -> list[Json]:
    # A join's rows carry one field more than the reader's schema says, and to_json writes
    # by the row; naming each field keeps to the schema.
    columns = [
        f"struct(`{field.name}`.*) AS `{field.name}`"
        if field.dataType.typeName() == "struct"
        else f"`{field.name}`"
        for field in frame.schema.fields
    ]
    texts = (
        frame.selectExpr(*columns)
        .selectExpr("to_json(struct(*), map('ignoreNullFields', 'false')) AS row")
        .collect()
    )
    return [json.loads(text) for text in sorted(text["row"] for text in texts)]
