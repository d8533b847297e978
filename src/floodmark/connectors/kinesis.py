"""Amazon Kinesis: shards, each with an iterator's type and position. Pure.

`{"metadata":…,"shardId-0":{"iteratorType":…,"iteratorPosition":…}}` (ShardOffsets of Qubole's and
awslabs' connectors) or a list of objects with `shard` (Databricks).
"""

from __future__ import annotations

from floodmark.connectors.source import Recognised, SourceKind, Sureness, Written


class Kinesis(SourceKind):
    name = "kinesis"
    any_format = True
    no_option = "Kinesis takes one starting position for all shards, not one each."

    def recognise(self, written: Written) -> Recognised | None:
        offset = written.offset
        if isinstance(offset, list):
            if offset and all(isinstance(item, dict) and "shard" in item for item in offset):
                return Recognised(self.name, Sureness.CERTAIN, "a list of shards")
        elif isinstance(offset, dict):
            shards = [value for key, value in offset.items() if key != "metadata"]
            if shards and all(isinstance(one, dict) and "iteratorType" in one for one in shards):
                return Recognised(self.name, Sureness.CERTAIN, "shards with an iterator each")
        return None


KIND = Kinesis()
