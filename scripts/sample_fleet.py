"""Writes checkpoints of a made-up company, for the screenshots of docs/serving.md.

Their files are as Spark and `floodmark run` write them; their times end now.
"""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from floodmark.connectors.behind import Behind, Lag, PartLag, SourceLag

PROVIDER = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
CONF = {
    "spark.sql.streaming.stateStore.providerClass": PROVIDER,
    "spark.sql.streaming.join.stateFormatVersion": "2",
    "spark.sql.streaming.stateStore.compression.codec": "lz4",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.aggregation.stateFormatVersion": "2",
}


@dataclass(frozen=True)
class SampleStream:
    path: str
    batches: int = 90
    every: float = 12.0
    takes: float = 4.0
    ago: float = 3.0
    """Seconds since the last commit."""
    in_flight: bool = False
    partitions: int = 0
    """Of its state; 0: it keeps none."""
    topic: str = "orders"
    watermark: float | None = None
    progress: bool = False
    damaged: bool = False


FLEET = (
    SampleStream("payments/orders-enriched", partitions=16, watermark=90, progress=True),
    SampleStream("payments/fraud-scores", every=2, takes=0.9, ago=1, topic="payments"),
    SampleStream("payments/refunds", every=60, takes=8, ago=170, topic="refunds"),
    SampleStream("payments/ledger", ago=5400, in_flight=True, partitions=8, topic="ledger"),
    SampleStream(
        "web/clickstream-sessions",
        every=20,
        takes=13,
        ago=11,
        partitions=12,
        topic="clicks",
        watermark=1900,
    ),
    SampleStream("web/page-views", every=5, takes=1.2, ago=2, topic="views"),
    SampleStream(
        "warehouse/stock-levels", every=300, takes=40, ago=95, partitions=4, topic="stock"
    ),
    SampleStream("warehouse/returns", batches=2, ago=20, topic="returns"),
    SampleStream("warehouse/suppliers", ago=86_000, topic="suppliers"),
    SampleStream("warehouse/shelf-scans", ago=9, damaged=True, topic="scans"),
    SampleStream("lake/_checkpoints/main/sales/orders_bronze/orders_bronze/0", every=30, ago=12),
    SampleStream(
        "lake/_checkpoints/main/sales/orders_silver/orders_silver/0", every=30, ago=18, partitions=4
    ),
)


def write_fleet(root: Path, now: float | None = None) -> None:
    chance = random.Random(20)  # nosec B311
    for stream in FLEET:
        write_stream(root / stream.path, stream, time.time() if now is None else now, chance)


def sample_lag(path: str, **_: object) -> Lag:
    """What a made-up Kafka answers: most streams keep up, some do not."""
    stream = next((one for one in FLEET if path.endswith(one.path)), FLEET[0])
    now = int(time.time() * 1000)
    waiting = LAGS.get(stream.path, 0)
    last = 4200 + stream.batches - 1
    parts = []
    for part in range(3):
        position = last * (310 + 7 * part)
        behind = waiting * (3 - part) // 6 + (now // 1000 % 40 if waiting > 1000 else 0)
        ms = int(behind / 160 * 1000)
        end, earliest = position + behind, position - 90_000 + 3_000 * part
        left = 6 * 86_400_000 - ms if behind else None
        parts.append(
            PartLag(f"{stream.topic}/{part}", position, end, earliest, behind, ms, left, 0)
        )
    records = sum(part.records or 0 for part in parts)
    ms = max(part.ms or 0 for part in parts)
    left = min((p.retention_left_ms for p in parts if p.retention_left_ms), default=None)
    note = (
        "Bytes count keys, values and headers, before compression; they are estimated from the "
        "first 60 records that are unread."
    )
    behind_all = Behind(records, 412 * records, ms, bytes_estimated=records > 0)
    source = SourceLag("0", "kafka", behind_all, tuple(parts), left, 0, "kafka-1:9092", (note,))
    return Lag(path, last, None, now, (source,))


LAGS = {
    "payments/ledger": 214_000,
    "payments/orders-enriched": 5_200,
    "web/clickstream-sessions": 1_900,
    "payments/refunds": 34,
}


def write_stream(folder: Path, stream: SampleStream, now: float, chance: random.Random) -> None:
    for log in ("offsets", "commits", "sources/0"):
        (folder / log).mkdir(parents=True, exist_ok=True)
    _write(
        folder / "metadata", json.dumps({"id": str(uuid.UUID(int=chance.getrandbits(128)))}), now
    )
    committed = now - stream.ago
    total = stream.batches + int(stream.in_flight)
    took = [stream.takes * chance.uniform(0.7, 1.5) for _ in range(total)]
    for slow in range(23, total, 31):
        took[slow] *= 2.4
    conf = {**CONF, "spark.sql.shuffle.partitions": str(stream.partitions or 8)}
    first = 4200
    ends = [
        committed
        - (stream.batches - 1 - number) * stream.every
        + (chance.uniform(-0.3, 0.3) * stream.every if number < stream.batches - 1 else 0)
        for number in range(total)
    ]
    planned = [end - took[number] for number, end in enumerate(ends)]
    for number in range(total):
        batch, at = first + number, planned[number]
        watermark = _watermark(stream, at)
        _write(folder / "offsets" / str(batch), _offsets(stream, batch, at, watermark, conf), at)
        if number < stream.batches:
            following = planned[number + 1] if number + 1 < total else ends[number]
            _write(
                folder / "commits" / str(batch),
                _commit(_watermark(stream, following)),
                ends[number],
            )
    _write(
        folder / "sources/0/0",
        f"\0v1\n{_compact({stream.topic: {'0': 0, '1': 0, '2': 0}})}",
        committed,
    )
    if stream.partitions:
        _state(folder, stream, first, committed, chance)
    if stream.progress:
        _notes(folder, stream, first, took, committed, chance)
    if stream.damaged:
        (folder / "offsets" / str(first + total - 2)).write_bytes(b'v1\n{"batchWaterm')


def _write(path: Path, text: str | bytes, at: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (at, at))


def _watermark(stream: SampleStream, planned: float) -> int:
    """It moves in steps, as a watermark does that follows what the rows say."""
    if stream.watermark is None:
        return 0
    return int((planned - stream.watermark) // 30 * 30 * 1000)


def _offsets(
    stream: SampleStream, batch: int, planned: float, watermark: int, conf: Mapping[str, str]
) -> str:
    metadata = {"batchWatermarkMs": watermark, "batchTimestampMs": int(planned * 1000)}
    ends = {str(part): batch * (310 + 7 * part) for part in range(3)}
    lines = ("v1", _compact({**metadata, "conf": conf}), _compact({stream.topic: ends}))
    return "\n".join(lines)


def _commit(watermark: int) -> str:
    return f"v1\n{_compact({'nextBatchWatermarkMs': watermark})}"


def _state(
    folder: Path, stream: SampleStream, first: int, committed: float, chance: random.Random
) -> None:
    store = {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": stream.partitions}
    info = {"operatorId": 0, "operatorName": "stateStoreSave"}
    described = "v1\n" + _compact({"operatorInfo": info, "stateStoreInfo": [store]})
    _write(folder / "state/0/_metadata/metadata", described, committed)
    text = (
        b'{"type":"struct","fields":[{"name":"k","type":"string","nullable":true,"metadata":{}}]}'
    )
    chunk = b"\0\0\0\x01" + len(text).to_bytes(2, "big") + text
    _write(folder / "state/0/0/_metadata/schema", b"\0\x02v2" + chunk + chunk, committed)
    last = first + stream.batches
    for partition in range(stream.partitions):
        weight = 3.2 if partition == 5 else chance.uniform(0.7, 1.3)
        for version in range(last - 40, last + 1):
            at = committed - (last - version) * stream.every
            wave = 1.6 if version % 31 < 3 else 1.0
            size = int(2600 * weight * wave * chance.uniform(0.6, 1.4))
            _write(folder / f"state/0/{partition}/{version}.delta", b"\0" * size, at)
        for version in (last - 40, last - 27, last - 14):
            at = committed - (last - version) * stream.every
            size = int(52_000 * weight)
            _write(folder / f"state/0/{partition}/{version}.snapshot", b"\0" * size, at)


def _notes(
    folder: Path,
    stream: SampleStream,
    first: int,
    took: list[float],
    committed: float,
    chance: random.Random,
) -> None:
    servers = {"kafka.bootstrap.servers": "kafka-1:9092", "subscribe": stream.topic}
    for number, (batch, spark, code) in enumerate(
        ((first, "4.1.0", "a"), (first + 30, "4.1.0", "b"), (first + 61, "4.2.0", "b")), 1
    ):
        at = committed - (first + stream.batches - batch) * stream.every
        note = {
            "floodmark": "start-note",
            "version": 1,
            "pipeline": "orders",
            "query_id": "",
            "run_id": str(number),
            "spark_version": spark,
            "code_fingerprint": code,
            "sources": [{"kind": "kafka", "options": servers, "schema_ddl": ""}],
            "sink": "delta",
            "sink_options": {},
            "output_mode": "update",
            "trigger": "every 12 seconds",
            "next_batch": batch,
            "started_ms": int(at * 1000),
        }
        _write(folder / f"_floodmark/starts/{number}.json", json.dumps(note), at)
    lines = []
    for number in range(stream.batches):
        ends = committed - (stream.batches - 1 - number) * stream.every
        ms = int(took[number] * 1000)
        shares = {
            "latestOffset": 0.04,
            "queryPlanning": 0.06,
            "getBatch": 0.01,
            "walCommit": 0.05,
            "addBatch": 0.78,
            "commitOffsets": 0.06,
        }
        rows = int(1900 * chance.uniform(0.6, 1.5))
        moment = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(ends - took[number]))
        newest = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(ends - took[number] - 21))
        lines.append(
            _compact(
                {
                    "pipeline": "orders",
                    "query_id": "",
                    "run_id": "3",
                    "batch": first + number,
                    "time": moment,
                    "rows": rows,
                    "rows_per_second": 0.0,
                    "duration_ms": ms,
                    "durations_ms": {name: int(ms * share) for name, share in shares.items()},
                    "sources": [],
                    "state_rows": 48_000 + 40 * number,
                    "state_bytes": 11_000_000,
                    "watermark": None,
                    "rows_out": int(rows * 0.31),
                    "late_rows": chance.choice((0, 0, 0, 4, 11)),
                    "event_time": {"max": newest},
                }
            )
        )
    _write(folder / "_floodmark/progress.jsonl", "\n".join(lines) + "\n", committed)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
