"""Offsets as real connectors write them, a set a kind: what they are, and what is said of them.

A new kind brings its own set. `form` names the class of the connector that writes the text.
"""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.connectors.source import Sureness


@dataclass(frozen=True)
class Golden:
    text: str
    form: str
    explained: tuple[str, ...]
    """The offset alone, in words."""
    sureness: Sureness = Sureness.CERTAIN
    initial: bytes | None = None
    """`sources/<id>/0`, where it tells more."""
    option: tuple[str, str] | None = None
    """The option that begins a new stream there, and its value."""
    note: str | None = None
    """What is said besides, or why there is no option."""


def delta(version: int, index: int, starting: str = "false") -> str:
    return (
        f'{{"sourceVersion":1,"reservoirId":"4c1f","reservoirVersion":{version},"index":{index},'
        f'"isStartingVersion":{starting}}}'
    )


EVENTS = (
    '{"{\\"ehName\\":\\"eh\\",\\"partitionId\\":0}":{"offset":null,"seqNo":23,"enqueuedTime":null,'
    '"isInclusive":true},"{\\"ehName\\":\\"eh\\",\\"partitionId\\":1}":{"offset":"-1","seqNo":-1,'
    '"enqueuedTime":null,"isInclusive":true}}'
)
HUBS_LOOK_THE_SAME = (
    "Event Hubs' offsets look the same. If the source is Event Hubs, give --source-kind "
    "0=eventhubs."
)
AUTO_LOADER = "Auto Loader's list of files lies in its own folder of the checkpoint."
ICEBERG = (
    "Iceberg's only starting option is a time (stream-from-timestamp), which is coarser than this "
    "offset. With the time of the snapshot (committed_at in TABLE.snapshots, in milliseconds), a "
    "new stream reads all files of the snapshot again."
)
HUDI = "Hudi's starting instant reads its own commit again."
PAIMON = "Paimon's scan options begin at a snapshot, not at a file inside it."
SHARING = "Delta Sharing's startingVersion begins at a version, not inside it."
KINESIS = "Kinesis' option takes one starting position for all shards, not one for each."
RATE = "The rate source has no starting option."
FILES = "A file source has no starting option: its list of seen files is its position."
MONGO = "MongoDB's change.stream.startup.mode begins at a time, not at a resume token."
PYTHON = "A data source written in Python begins where its own code says."

OWN_FILES = {
    "auto-loader": ("rocksdb/000012.sst", "metadata"),
    "kinesis": ("shard-source/0",),
    "iceberg": ("offsets/0",),
    "pulsar": ("0",),
    "hudi": ("0",),
}
"""What lies in `sources/<id>/` besides the offsets, as each connector keeps it."""

GOLDEN: dict[str, tuple[Golden, ...]] = {
    "kafka": (
        Golden(
            '{"orders":{"0":23,"1":41},"clicks":{"0":0}}',
            "KafkaSourceOffset",
            ("orders   0: 23   1: 41", "clicks   0: 0"),
            Sureness.POSSIBLE,
            option=("startingOffsets", '{"orders":{"0":23,"1":41},"clicks":{"0":0}}'),
            note=HUBS_LOOK_THE_SAME,
        ),
        Golden(
            '{"orders":{"0":23}}',
            "KafkaSourceOffset",
            ("orders   0: 23",),
            Sureness.PROBABLE,
            initial=b'\0v1\n{"orders":{"0":0}}',
            option=("startingOffsets", '{"orders":{"0":23}}'),
            note=HUBS_LOOK_THE_SAME,
        ),
    ),
    "eventhubs": (
        Golden(
            '{"eh":{"0":23,"1":-1}}',
            "EventHubsSourceOffset",
            ("eh   0: 23   1: -1",),
            Sureness.POSSIBLE,
            option=("eventhubs.startingPositions", EVENTS),
        ),
    ),
    "delta": (
        Golden(
            delta(8, -1),
            "DeltaSourceOffset",
            ("version 8",),
            option=("startingVersion", "8"),
            note="The stream has read every version before 8, and nothing of 8.",
        ),
        Golden(
            delta(8, 2),
            "DeltaSourceOffset",
            ("version 8 file 2",),
            option=("startingVersion", "8"),
            note="The stream has read files 0 to 2 of version 8; startingVersion reads them again.",
        ),
        Golden(
            delta(8, -20),
            "DeltaSourceOffset.METADATA_CHANGE_INDEX",
            ("version 8 at a change of its schema",),
            option=("startingVersion", "8"),
        ),
        Golden(
            delta(3, 1, "true"),
            "DeltaSourceOffset",
            ("version 3 file 1 of the first snapshot",),
            note="The stream is still inside the table's first full snapshot. "
            "startingVersion cannot resume it; only a checkpoint can.",
        ),
    ),
    "file": (
        Golden('{"logOffset":12}', "FileStreamSourceOffset", ("log entry 12",), note=FILES),
        Golden(
            "3",
            "LongOffset of Spark 2.1",
            ("log entry 3",),
            initial=b'v1\n{"path":"/in/a","timestamp":1,"batchId":0}',
            note=FILES,
        ),
    ),
    "rate": (
        Golden("17", "RateStreamOffset", ("17",), initial=b"v1\n1700000000000", note=RATE),
        Golden(
            '{"offset":10,"timestamp":1000}',
            "RatePerMicroBatchStreamOffset",
            ('{"offset":10,"timestamp":1000}',),
            Sureness.POSSIBLE,
            note=RATE,
        ),
        Golden(
            '{"0":{"value":7,"runTimeMs":1}}',
            "RateStreamOffset of continuous processing",
            ('{"0":{"value":7,"runTimeMs":1}}',),
            Sureness.POSSIBLE,
            note=RATE,
        ),
    ),
    "memory": (
        Golden(
            "12",
            "LongOffset",
            ("12",),
            Sureness.POSSIBLE,
            note="A memory stream or a socket cannot be read again from an offset.",
        ),
    ),
    "kinesis": (
        Golden(
            '{"metadata":{"streamName":"s","batchId":"7"},"shardId-000000000000":'
            '{"iteratorType":"AFTER_SEQUENCE_NUMBER","iteratorPosition":"4960"}}',
            "KinesisSourceOffset of Qubole",
            ("shardId-000000000000   after 4960",),
            note=KINESIS,
        ),
        Golden(
            '{"metadata":{"streamName":"s","batchId":"7"},"shardId-000000000000":'
            '{"iteratorType":"SHARD_END","iteratorPosition":"","subSequenceNumber":"-1",'
            '"isLast":"true"},"shardId-000000000001":{"iteratorType":"TRIM_HORIZON",'
            '"iteratorPosition":""}}',
            "KinesisV2SourceOffset of awslabs",
            (
                "shardId-000000000000   closed, read to its end",
                "shardId-000000000001   from its oldest record",
            ),
            note=KINESIS,
        ),
        Golden(
            '[{"shard":{"stream":"s","shardId":"shardId-0"},"firstSeqNum":null,"lastSeqNum":"4960",'
            '"closed":false,"msBehindLatest":"0"},{"shard":{"stream":"s","shardId":"shardId-1"},'
            '"firstSeqNum":null,"lastSeqNum":null,"closed":true,"msBehindLatest":null}]',
            "Kinesis of Databricks, by its documentation",
            ("shardId-0   up to 4960", "shardId-1   closed, nothing read yet"),
            note=KINESIS,
        ),
        Golden(
            '[{"shard":{"stream":"s","shardId":"shardId-0"},"lastSeqNum":"4960","closed":false},'
            '{"shard":{"stream":"t","shardId":"shardId-0"},"lastSeqNum":"77","closed":false}]',
            "Kinesis of Databricks, two streams",
            ("s shardId-0   up to 4960", "t shardId-0   up to 77"),
            note=KINESIS,
        ),
        Golden(
            '{"metadata":{"batchId":"-1","streamName":"orders"}}',
            "KinesisV2SourceOffset of awslabs, before the first shard",
            ("no shard yet",),
            note=KINESIS,
        ),
    ),
    "iceberg": (
        Golden(
            '{"version":1,"snapshot_id":8120,"position":3,"scan_all_files":false}',
            "StreamingOffset",
            ("snapshot 8120, 3 of its files",),
            note=ICEBERG,
        ),
        Golden(
            '{"version":1,"snapshot_id":8120,"position":3,"scan_all_files":true}',
            "StreamingOffset",
            ("snapshot 8120, 3 of its files (the whole table's)",),
            note=ICEBERG,
        ),
        Golden(
            '{"version":1,"snapshot_id":8120,"position":3,"scan_all_files":false,'
            '"snapshot_timestamp_ms":1794807601000,"snapshot_total_rows":400}',
            "StreamingOffset with the snapshot's time and rows",
            ("snapshot 8120 of 2026-11-16 05:40:01 UTC, 3 of its files",),
            option=("stream-from-timestamp", "1794807601000"),
            note="A time is coarser than this offset: with it a stream reads snapshot 8120 from "
            "its first file, though 3 of its files are read.",
        ),
        Golden(
            '{"version":1,"snapshot_id":-1,"position":-1,"scan_all_files":false}',
            "StreamingOffset.START_OFFSET",
            ("before the first snapshot",),
            note="The stream has read nothing of the table yet. A stream without an option begins "
            "with the oldest snapshot that the table has.",
        ),
    ),
    "hudi": (
        Golden(
            '{"commitTime":"20261116054001000"}',
            "HoodieSourceOffset before 1.0",
            ("commit 20261116054001000",),
            note=HUDI,
        ),
        Golden(
            '{"offsetCommitTime":"20261116054001000"}',
            "HoodieSourceOffset",
            ("commit 20261116054001000",),
            note=HUDI,
        ),
    ),
    "paimon": (
        Golden(
            '{"snapshotId":3,"index":1,"scanSnapshot":false}',
            "PaimonSourceOffset",
            ("snapshot 3 split 1",),
            note=PAIMON,
        ),
        Golden(
            '{"snapshotId":3,"index":1,"scanSnapshot":true,"totalSplits":2}',
            "PaimonSourceOffset.withTotalSplits",
            ("snapshot 3 split 1 of the whole table",),
            note=PAIMON,
        ),
    ),
    "delta-sharing": (
        Golden(
            '{"sourceVersion":1,"tableId":"4c1f","tableVersion":8,"index":3,'
            '"isStartingVersion":false}',
            "DeltaSharingSourceOffset",
            ("version 8 file 3",),
            note=SHARING,
        ),
        Golden(
            '{"sourceVersion":1,"tableId":"4c1f","tableVersion":8,"index":-1,'
            '"isStartingVersion":true}',
            "DeltaSharingSourceOffset",
            ("version 8 of the first snapshot",),
            note=SHARING,
        ),
    ),
    "auto-loader": (
        Golden(
            '{"seqNum":234,"sourceVersion":1,"lastBackfillStartTimeMs":1}',
            "CloudFilesSourceOffset, by the documentation",
            ("file 234 of the source's list",),
            note=AUTO_LOADER,
        ),
    ),
    "mongodb": (
        Golden(
            '{"version": 1, "offset": {"$timestamp": {"t": 1794807601, "i": 1}}}',
            "BsonTimestampOffset",
            ("from 2026-11-16 05:40:01 UTC",),
            note=MONGO,
        ),
        Golden(
            '{"version": 1, "offset": {"$timestamp": {"t": 4294967295, "i": 4294967295}}}',
            "BsonTimestampOffset",
            ("from where the change stream is first opened",),
            note=MONGO,
        ),
        Golden(
            '{"version": 1, "offset": {"_data": "8263A1"}}',
            "ResumeTokenBasedOffset",
            ("after token 8263A1",),
            note=MONGO,
        ),
        Golden(
            '{"_data": "8263A1"}',
            "ResumeTokenBasedOffset of the first releases",
            ("after token 8263A1",),
            note=MONGO,
        ),
        Golden(
            '{"version": 1, "offset": {"_data": "8263A1", "_typeBits": {"$binary": {"base64": '
            '"gkc=", "subType": "00"}}}}',
            "ResumeTokenBasedOffset with the type bits of MongoDB's token",
            ("after token 8263A1",),
            note=MONGO,
        ),
        Golden(
            '{"version": 1, "offset": {}}',
            "ResumeTokenBasedOffset.INITIAL_RESUME_TOKEN_OFFSET",
            ("from where the change stream is first opened",),
            note=MONGO,
        ),
    ),
    "cosmos": (
        Golden(
            '{"id":"com.azure.cosmos.spark.changeFeed.offset.v1","state":"eyJ2IjoxfQ=="}',
            "ChangeFeedOffset",
            ("change feed continuation, 12 characters",),
            note="spark.cosmos.changeFeed.startFrom takes a time, not this continuation.",
        ),
    ),
    "pulsar": (
        Golden(
            # MessageIdData: ledger 10, entry 300, partition 0.
            '{"persistent://public/default/orders":[8,10,16,-84,2,24,0]}',
            "SpecificPulsarOffset",
            ("persistent://public/default/orders   ledger 10 entry 300",),
            note="Pulsar's startingOffsets takes these message ids; whether the last message is "
            "read again was not tried.",
        ),
    ),
    "rocketmq": (
        Golden(
            '{"orders":{"broker-a":{"0":23,"1":41},"broker-b":{"0":7}}}',
            "RocketMQSourceOffset",
            ("orders   broker-a 0: 23   broker-a 1: 41   broker-b 0: 7",),
            Sureness.POSSIBLE,
            note="Nobody has tried RocketMQ's startingOffsets with these offsets.",
        ),
    ),
    "redis": (
        Golden(
            '{"offsets":{"orders":{"groupName":"spark-source","offset":"1543674099961-0"}}}',
            "RedisSourceOffset of spark-redis",
            ("orders   1543674099961-0",),
            note="spark-redis' stream.offsets takes these ids; whether the last entry is read "
            "again was not tried.",
        ),
    ),
    "python": (
        Golden(
            '{"pos": 2, "tag": "x y"}',
            "PythonStreamingSourceOffset",
            ('{"pos":2,"tag":"x y"}',),
            Sureness.PROBABLE,
            note=PYTHON,
        ),
        Golden(
            '{"offset": {"0": 5}}',
            "PythonStreamingSourceOffset",
            ('{"offset":{"0":5}}',),
            Sureness.PROBABLE,
            note=PYTHON,
        ),
    ),
}
