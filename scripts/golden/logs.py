"""A checkpoint's offset and commit log as Spark's own readers of those logs see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from scripts.golden.scenario import Version

_STREAMING = "org.apache.spark.sql.execution.streaming"


def newest_log_entries(spark: SparkSession, version: Version, checkpoint: Path) -> dict[str, Any]:
    offsets = _latest(spark, version, "OffsetSeqLog", checkpoint / "offsets")
    commit = _latest(spark, version, "CommitLog", checkpoint / "commits")
    return {
        "offsets": offsets and _offset_entry(version, *offsets),
        "commit": commit and _commit_entry(version, *commit),
    }


def _latest(
    spark: SparkSession, version: Version, name: str, folder: Path
) -> tuple[int, Any] | None:
    if not folder.is_dir():
        return None
    package = f"{_STREAMING}.checkpointing" if version >= (4, 1) else _STREAMING
    log_class = getattr(spark._jvm, f"{package}.{name}")
    read_only = (True,) if version >= (4, 2) else ()
    latest = log_class(spark._jsparkSession, str(folder), *read_only).getLatest()
    return None if latest.isEmpty() else (latest.get()._1(), latest.get()._2())


def _offset_entry(version: Version, batch: int, entry: Any) -> dict[str, Any]:
    # Only 4.2 and later know a second version.
    log_version = entry.version() if version >= (4, 2) else 1
    metadata = getattr(entry, "metadataOpt" if version >= (4, 2) else "metadata")()
    return {
        "batch": batch,
        "version": log_version,
        "offsets": _by_name(entry) if log_version == 2 else _by_position(entry),
        "watermark_ms": None if metadata.isEmpty() else metadata.get().batchWatermarkMs(),
        "time_ms": None if metadata.isEmpty() else metadata.get().batchTimestampMs(),
    }


def _by_position(entry: Any) -> dict[str, str | None]:
    offsets = entry.offsets()
    return {str(index): _json(offsets.apply(index)) for index in range(offsets.size())}


def _by_name(entry: Any) -> dict[str, str | None]:
    pairs = entry.offsetsMap().toSeq()
    named = [pairs.apply(index) for index in range(pairs.size())]
    return {pair._1(): _json(pair._2()) for pair in named}


def _json(offset: Any) -> str | None:
    """Text, not JSON data: Spark compares offsets by their text."""
    text: str | None = None if offset.isEmpty() else offset.get().json()
    return text


def _commit_entry(version: Version, batch: int, entry: Any) -> dict[str, Any]:
    return {
        "batch": batch,
        "version": _commit_version(version, entry),
        "next_batch_watermark_ms": entry.nextBatchWatermarkMs(),
    }


def _commit_version(version: Version, entry: Any) -> int:
    if version >= (4, 2):
        number: int = entry.version()
        return number
    # 4.0 and 4.1 have one class for both: v2 is the one with ids.
    return 2 if version >= (4, 0) and entry.stateUniqueIds().isDefined() else 1
