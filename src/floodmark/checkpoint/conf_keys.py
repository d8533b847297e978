"""Spark's settings that a checkpoint pins or that tell how its state is written: their names."""

from __future__ import annotations

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
PROVIDER_CLASS = "spark.sql.streaming.stateStore.providerClass"
STATE_CODEC = "spark.sql.streaming.stateStore.compression.codec"
ROW_CHECKSUMS = "spark.sql.streaming.stateStore.rowChecksum.enabled"
STATE_ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
STATE_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
MERGE_VERSION = "spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion"
STRICT_DISTRIBUTION = "spark.sql.streaming.statefulOperator.useStrictDistribution"
SOURCE_EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
CHECKPOINT_LOCATION = "checkpointLocation"
"""A writer's option."""
CHECKPOINT_OPTION = CHECKPOINT_LOCATION.lower()
"""The same as options are kept: in lower case."""
DEFAULT_CHECKPOINT_LOCATION = "spark.sql.streaming.checkpointLocation"
RETAINED_BATCHES = "spark.sql.streaming.minBatchesToRetain"
FILE_MANAGER_CLASS = "spark.sql.streaming.checkpointFileManagerClass"
PARQUET_TIMES = "spark.sql.parquet.outputTimestampType"
