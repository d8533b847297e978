"""Reads the files called `metadata`: the query's identity, and each stateful operator.

Spark writes the query's file once, when the checkpoint is new. Exactly-once sinks remember (query
id, batch), so this id is worth as much as the offsets. Spark 4.0 and later describe operators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.text import (
    compact_json,
    decode,
    long_of,
    parse_json_object,
    shorten,
    split_version,
)
from floodmark.errors import MalformedFile

NEWEST_VERSION = 2


@dataclass(frozen=True)
class QueryMetadata:
    id: str
    text: str


def parse_metadata(data: bytes) -> QueryMetadata:
    text = decode(data)
    if not text.strip():
        raise MalformedFile(
            "the file is empty",
            "A crash interrupted its write. Every start of the query fails at this file.",
        )
    query_id = parse_json_object(text, "metadata").get("id")
    if not isinstance(query_id, str) or not query_id:
        raise MalformedFile("metadata has no query id")
    return QueryMetadata(query_id, text)


def render_metadata(metadata: QueryMetadata) -> bytes:
    return metadata.text.encode()


def new_metadata(query_id: str) -> QueryMetadata:
    return QueryMetadata(query_id, f'{{"id":"{query_id}"}}')


@dataclass(frozen=True)
class StateStoreInfo:
    store_name: str
    num_cols_prefix_key: int
    num_partitions: int
    schema_paths: tuple[str, ...] = ()
    """v2: absolute paths of the schema files, oldest first. A moved checkpoint breaks them."""


@dataclass(frozen=True)
class OperatorMetadata:
    version: int
    operator_name: str
    stores: tuple[StateStoreInfo, ...]
    properties_json: str


def parse_operator_metadata(data: bytes) -> OperatorMetadata:
    version, rest = split_version(decode(data), NEWEST_VERSION)
    fields = parse_json_object(rest, "the operator metadata")
    info = fields.get("operatorInfo")
    stores = fields.get("stateStoreInfo", [])
    if not isinstance(info, dict) or not isinstance(info.get("operatorName"), str):
        raise MalformedFile("the operator metadata names no operator")
    if not isinstance(stores, list) or not all(isinstance(store, dict) for store in stores):
        raise MalformedFile(f"stateStoreInfo is not a list of stores: {shorten(repr(stores))}")
    long_of(info, "operatorId", "operatorInfo")  # Spark cannot read the file without it
    return OperatorMetadata(
        version,
        info["operatorName"],
        tuple(_store(store) for store in stores),
        str(fields.get("operatorPropertiesJson", "")),
    )


def with_partitions(data: bytes, partitions: int) -> bytes:
    """Return the same metadata with another number of partitions."""
    parse_operator_metadata(data)
    line, _, body = decode(data).partition("\n")
    fields = parse_json_object(body, "the operator metadata")
    for store in fields.get("stateStoreInfo", []):
        store["numPartitions"] = partitions
    return f"{line}\n{compact_json(fields)}".encode()


def _store(fields: dict[str, Any]) -> StateStoreInfo:
    # Pre-releases of 4.0 wrote one path, releases a list.
    paths = fields.get("stateSchemaFilePaths", fields.get("stateSchemaFilePath", []))
    if isinstance(paths, str):
        paths = [paths]
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise MalformedFile(f"the schema paths are {shorten(repr(paths))}")
    return StateStoreInfo(
        str(fields.get("storeName", "default")),
        long_of(fields, "numColsPrefixKey", "stateStoreInfo", 0),
        long_of(fields, "numPartitions", "stateStoreInfo", 0),
        tuple(paths),
    )
