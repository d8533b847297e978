"""`metadata`: the query's identity, written once when the checkpoint is new.

Exactly-once sinks remember (query id, batch), so this id is worth as much as
the offsets are.
"""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.checkpoint.text import decode, parse_json_object
from floodmark.errors import MalformedFile


@dataclass(frozen=True)
class QueryMetadata:
    id: str
    text: str


def parse_metadata(data: bytes) -> QueryMetadata:
    text = decode(data)
    if not text.strip():
        raise MalformedFile(
            "the file is empty", "A crash stopped its write; every start of the query fails on it."
        )
    query_id = parse_json_object(text, "metadata").get("id")
    if not isinstance(query_id, str) or not query_id:
        raise MalformedFile("metadata has no query id")
    return QueryMetadata(query_id, text)


def render_metadata(metadata: QueryMetadata) -> bytes:
    return metadata.text.encode()


def new_metadata(query_id: str) -> QueryMetadata:
    return QueryMetadata(query_id, f'{{"id":"{query_id}"}}')
