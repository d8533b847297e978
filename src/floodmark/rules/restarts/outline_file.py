"""Writes and reads outlines: a checkpoint's description without data, as a JSON file. Pure.

An outline has sources, plan, state schemas, settings and versions, in a fixed order and without
positions, so that it changes only when the checkpoint's nature changes. `check` judges by it as by
the checkpoint itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from floodmark.addresses import public_url
from floodmark.checkpoint.commits import CommitEntry
from floodmark.checkpoint.layout import STATE, FileInfo
from floodmark.checkpoint.metadata import OperatorMetadata, QueryMetadata, StateStoreInfo
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.checkpoint.offsets import OffsetEntry, parse_offset_metadata
from floodmark.checkpoint.outline import OperatorOutline
from floodmark.checkpoint.text import compact_json
from floodmark.connectors.registry import about
from floodmark.connectors.source import SourceOffset
from floodmark.errors import MalformedFile, UnknownVersion
from floodmark.redaction import noted_conf, noted_options
from floodmark.rules.restarts.held_checkpoint import HeldCheckpoint
from floodmark.state.shapes.schema import ColumnFamily, StateSchema
from floodmark.wire import dumps

KIND, VERSION = "checkpoint-outline", 1
_Found = TypeVar("_Found")
_NOTED = (
    "spark_version",
    "sources",
    "sink",
    "sink_options",
    "output_mode",
    "trigger",
    "schema_json",
    "conf",
    "code_fingerprint",
    "tree",
    "salt",
)
_ELSEWHERE = "/elsewhere"
_SOMETHING = "something"
_PROVIDER_FILE = {"hdfs": "delta", "rocksdb": "zip"}


def outline_text(held: HeldCheckpoint, running: bool = False) -> str:
    """Return the outline of a checkpoint: small, in a fixed order, without data and secrets.

    While its query is `running`, an in-flight batch is simply the next one and means nothing.
    """
    checkpoint = held.checkpoint
    document = {
        "floodmark": KIND,
        "version": VERSION,
        "checkpoint": public_url(checkpoint.path),
        "begun": checkpoint.latest_batch is not None,
        "in_flight": checkpoint.in_flight_batch is not None and not running,
        "logs": {
            "offsets": checkpoint.offset_log_version,
            "commits": checkpoint.commit_log_version,
            "sparse": _is_sparse(checkpoint),
        },
        "settings": dict(sorted(checkpoint.conf.items())),
        "sources": [_source(held, at, one) for at, one in enumerate(checkpoint.sources)],
        "state": [_operator(held, one) for one in held.held],
        "last_start": _start(held.note),
    }
    return dumps(document) + "\n"


def _is_sparse(checkpoint: Checkpoint) -> bool:
    """Whether the entry before the newest is missing, as async progress tracking leaves it."""
    latest = checkpoint.latest_batch or 0
    return latest > 0 and latest - 1 not in checkpoint.offset_ids


def _source(held: HeldCheckpoint, at: int, source: SourceOffset) -> dict[str, Any]:
    found = {"id": source.id, "kind": source.kind, "reads": _what_it_reads(source)}
    if at in held.seen:
        folders = held.seen[at].rpartition("/")[0].split("/")
        # Partition folders have values of the data in their names.
        kept = next((n for n, one in enumerate(folders) if "=" in one), len(folders))
        found["files_in"] = public_url("/".join(folders[:kept]))
    return found


def _what_it_reads(source: SourceOffset) -> Any:
    """Return topics with partitions, or a table's id: what stays the same in every batch."""
    kind, offset = about(source), source.offset
    if not isinstance(offset, dict):
        return None
    if kind.has_topics:
        return {
            topic: sorted(partitions, key=lambda one: (len(one), one))
            for topic, partitions in sorted(offset.items())
            if isinstance(partitions, dict)
        }
    return str(offset.get("reservoirId")) if kind.names_table else None


def _operator(held: HeldCheckpoint, operator: OperatorOutline) -> dict[str, Any]:
    number, checkpoint = operator.operator, held.checkpoint
    described = {one.operator: one for one in checkpoint.state_operators}
    commit = checkpoint.latest_commit
    found = described.get(number)
    return {
        "operator": number,
        "name": operator.name,
        "provider": found.provider if found else None,
        "partitions": found.partitions if found else None,
        "unique_ids": bool(commit and commit.state_unique_ids.get(number)),
        "moved": _is_moved(held, number),
        "prefix_columns": operator.prefix_columns,
        "properties": _readable(operator.properties_json),
        "window_us": held.windows.get(number),
        "stores": {
            store: _store(held.schemas.get(number, {}).get(store))
            for store in sorted(operator.stores)
        },
    }


def _store(schema: StateSchema | None) -> dict[str, Any]:
    families = schema.families if schema else ()
    return {
        "schema_version": schema.version if schema else None,
        "families": [
            {
                "name": one.name,
                "key": _readable(one.key_json),
                "value": _readable(one.value_json),
                "encoding": _readable(one.encoding_json),
                "user_key": _readable(one.user_key_json),
                "ids": None if one.key_id is None else [one.key_id, one.value_id],
            }
            for one in families
        ],
    }


def _is_moved(held: HeldCheckpoint, operator: int) -> bool:
    from floodmark.rules.restarts.source_matching import plain_path

    metadata = held.checkpoint.operators.get(operator)
    here = tuple(plain_path(place) + "/" for place in (held.checkpoint.path, *held.places))
    paths = [path for store in (metadata.stores if metadata else ()) for path in store.schema_paths]
    return any(not plain_path(path).startswith(here) for path in paths)


def _start(note: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return only the compared parts of the note, because a stranger may have written it."""
    if note is None:
        return None
    kept = {name: note[name] for name in _NOTED if name in note}
    for name, clean in (("conf", noted_conf), ("sink_options", noted_options)):
        if isinstance(kept.get(name), dict):
            kept[name] = dict(sorted(clean(_texts(kept[name])).items()))
    sources = kept.get("sources")
    if isinstance(sources, list):
        kept["sources"] = [_noted_source(one) for one in sources if isinstance(one, dict)]
    if isinstance(kept.get("schema_json"), str):
        kept["schema_json"] = _readable(kept["schema_json"])
    return kept


def _noted_source(source: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": source.get("kind"),
        "options": dict(sorted(noted_options(_texts(source.get("options"))).items())),
        "schema_ddl": source.get("schema_ddl"),
        "name": source.get("name"),
    }


def _texts(value: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, dict) else {}


def _readable(text: str | None) -> Any:
    """Return JSON inside JSON as data, if it can be turned back into the same text."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if not isinstance(value, str) and compact_json(value) == text else text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else compact_json(value)


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def is_outline(data: bytes) -> bool:
    """Whether a file names itself an outline."""
    return f'"{KIND}"'.encode() in data[:200]


def parse_outline(data: bytes, path: str) -> HeldCheckpoint:
    """Return the rules' view of a checkpoint, from its outline."""
    return _parsed(data, path, _held)


def outlined_checkpoint(data: bytes) -> str:
    """Return the location of the checkpoint that an outline describes."""
    return _parsed(data, "the file", lambda document: str(document["checkpoint"]))


def _parsed(data: bytes, path: str, read: Callable[[Mapping[str, Any]], _Found]) -> _Found:
    try:
        document = json.loads(data)
        if not isinstance(document, dict) or document.get("floodmark") != KIND:
            raise MalformedFile(f"{path} is not an outline of a checkpoint")
        version = document.get("version")
        if version != VERSION:
            raise UnknownVersion(f"outline {version}", f"outline {VERSION}", "floodmark")
        return read(document)
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise MalformedFile(
            f"{path} is not a readable outline: {type(error).__name__}",
            "The file was changed by hand, or is cut short.",
            "Create it again: floodmark outline CP -o FILE",
        ) from None


def _held(document: Mapping[str, Any]) -> HeldCheckpoint:
    sources, state = document["sources"], document["state"]
    note = document.get("last_start")
    if note is not None:
        note = {**note, "schema_json": _text(note.get("schema_json", ""))}
    return HeldCheckpoint(
        _checkpoint(document),
        tuple(_held_operator(one) for one in state),
        note,
        (),
        {
            at: f"{one['files_in']}/{_SOMETHING}"
            for at, one in enumerate(sources)
            if isinstance(one.get("files_in"), str)
        },
        {
            int(one["operator"]): int(one["window_us"])
            for one in state
            if one.get("window_us") is not None
        },
        {int(one["operator"]): _schemas(one) for one in state},
        is_outline=True,
    )


def _checkpoint(document: Mapping[str, Any]) -> Checkpoint:
    sources, state, logs = document["sources"], document["state"], document["logs"]
    path = str(document["checkpoint"])
    if not document["begun"]:
        return Checkpoint(path, Kind.STRUCTURED_STREAMING, (), metadata=_ID)
    planned = (0, 2) if logs["sparse"] else (0, 1)
    committed = planned[:1] if document["in_flight"] else planned
    conf = {str(key): str(value) for key, value in document["settings"].items()}
    text = compact_json({"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": conf})
    entry = OffsetEntry(
        int(logs["offsets"] or 1),
        parse_offset_metadata(text),
        tuple((str(one["id"]), _offset(one)) for one in sources),
    )
    ids = {int(one["operator"]): (("0",),) for one in state if one.get("unique_ids")}
    commit = CommitEntry(int(logs["commits"] or 1), 0, ids, {}, "")
    return Checkpoint(
        path,
        Kind.STRUCTURED_STREAMING,
        tuple(_state_files(state)),
        True,
        _ID,
        planned,
        committed if logs["commits"] is not None else (),
        dict.fromkeys(planned, entry),
        dict.fromkeys(committed, commit) if logs["commits"] is not None else {},
        {int(one["operator"]): _metadata(one) for one in state if one.get("name") is not None},
        said_kinds={str(one["id"]): str(one["kind"]) for one in sources},
    )


_ID = QueryMetadata("00000000-0000-0000-0000-000000000000", "")


def _offset(source: Mapping[str, Any]) -> str | None:
    """Return an offset in the source's form, without a position."""
    reads = source["reads"]
    if isinstance(reads, dict):
        return compact_json({topic: dict.fromkeys(own, 0) for topic, own in reads.items()})
    if isinstance(reads, str):
        return compact_json(
            {
                "sourceVersion": 1,
                "reservoirId": reads,
                "reservoirVersion": 0,
                "index": -1,
                "isStartingVersion": False,
            }
        )
    known = about(SourceOffset(str(source["id"]), str(source["kind"]), None, None))
    return compact_json({"logOffset": 0}) if known.lists_files else None


def _state_files(state: Iterable[Mapping[str, Any]]) -> Iterator[FileInfo]:
    """Yield one file in the last partition: it shows provider and number of partitions."""
    for one in state:
        partitions, kind = one.get("partitions"), _PROVIDER_FILE.get(one.get("provider") or "")
        if isinstance(partitions, int) and partitions > 0 and kind is not None:
            yield FileInfo(f"{STATE}/{int(one['operator'])}/{partitions - 1}/1.{kind}", 0)


def _schemas(one: Mapping[str, Any]) -> dict[str, StateSchema]:
    return {
        store: StateSchema(
            int(fields["schema_version"]), tuple(_family(family) for family in fields["families"])
        )
        for store, fields in one["stores"].items()
        if fields["schema_version"] is not None
    }


def _family(fields: Mapping[str, Any]) -> ColumnFamily:
    ids = fields["ids"] or (None, None)
    found = ColumnFamily(
        str(fields["name"]),
        _text(fields["key"]),
        _text(fields["value"]),
        ids[0],
        ids[1],
        _text_or_none(fields["encoding"]),
        _text_or_none(fields["user_key"]),
    )
    # Somebody may have edited it, but the rules rely on readable schemas.
    if not (found.key and found.value and found.encoding):
        raise ValueError(found.name)
    return found


def _held_operator(one: Mapping[str, Any]) -> OperatorOutline:
    name = one["name"]
    return OperatorOutline(
        int(one["operator"]),
        None if name is None else str(name),
        {store: schema.outline for store, schema in _schemas(one).items()},
        int(one["prefix_columns"]),
        _text(one["properties"]),
    )


def _metadata(one: Mapping[str, Any]) -> OperatorMetadata:
    paths = (_ELSEWHERE,) if one["moved"] else ()
    stores = tuple(
        StateStoreInfo(store, int(one["prefix_columns"]), int(one["partitions"] or 0), paths)
        for store in one["stores"]
    )
    return OperatorMetadata(1, str(one["name"]), stores, _text(one["properties"]))
