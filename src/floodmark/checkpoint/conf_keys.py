"""Names of Spark's settings: those that a checkpoint pins, and those that sessions start with."""

from __future__ import annotations

from collections.abc import Mapping

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
PROVIDER_CLASS = "spark.sql.streaming.stateStore.providerClass"
STATE_CODEC = "spark.sql.streaming.stateStore.compression.codec"
ROW_CHECKSUMS = "spark.sql.streaming.stateStore.rowChecksum.enabled"
STATE_ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
STATE_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
MERGE_VERSION = "spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion"
STRICT_DISTRIBUTION = "spark.sql.streaming.statefulOperator.useStrictDistribution"
SOURCE_EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
DEDUP_KEY_ORDER = "spark.sql.dropDuplicates.deterministicKeyOrder.enabled"
NULLABLE_OUTPUT = "spark.sql.streaming.statefulOperator.alwaysNullableOutput.enabled"
CHECKPOINT_LOCATION = "checkpointLocation"
"""A writer's option."""
CHECKPOINT_OPTION = CHECKPOINT_LOCATION.lower()
"""The same as options are kept: in lower case."""
DEFAULT_CHECKPOINT_LOCATION = "spark.sql.streaming.checkpointLocation"
RETAINED_BATCHES = "spark.sql.streaming.minBatchesToRetain"
FILE_MANAGER_CLASS = "spark.sql.streaming.checkpointFileManagerClass"
PARQUET_TIMES = "spark.sql.parquet.outputTimestampType"
MASTER = "spark.master"
UI_ENABLED = "spark.ui.enabled"
JARS = "spark.jars"
DRIVER_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
CODEC = "spark.io.compression.codec"
REMOTE = "spark.remote"

_BEFORE_4_3 = {DEDUP_KEY_ORDER: "false", NULLABLE_OUTPUT: "false"}
"""What Spark 4.3 assumes of a checkpoint that does not pin these; a new query begins with true.

The second one makes the window of a key nullable, which an older state's is not.
"""


def as_spark_reads(pinned: Mapping[str, str]) -> dict[str, str]:
    """Return a checkpoint's settings with those that Spark adds to an older one's."""
    return {**_BEFORE_4_3, **pinned} if pinned else {}
