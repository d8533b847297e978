"""Changes absolute paths inside a checkpoint to its new location, or to that of its data.

Spark follows these paths silently: with an old schema path it re-creates the old folder, and
treats the state as one without a schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from floodmark.checkpoint.layout import OPERATOR_METADATA
from floodmark.checkpoint.text import decode, lines_of, parse_json_object, shorten
from floodmark.connectors.files.file_log import (
    SinkFile,
    SourceFile,
    parse_sink_log,
    parse_source_log,
    render_log,
)
from floodmark.connectors.source import render_json
from floodmark.errors import MalformedFile, WrongUse
from floodmark.storage.files import local_path

_S3 = ("s3", "s3a", "s3n")
_HADOOP = {"s3": "s3a", "gcs": "gs"}
"""fsspec's scheme names and Hadoop's: Apache Spark opens no s3://, only some services do."""
_SAFE = "/:@!$&'()*+,;=~-._"
Moves = Sequence[tuple[str, str]]
"""(old prefix, new prefix) of the data that logs point to."""


def hadoop_root(location: str, like: str) -> str:
    """Return a checkpoint's root as Hadoop writes it; `like` is a path that Hadoop wrote."""
    path = local_path(location)
    if path is not None:
        # Hadoop shows a Path without URL escapes, and takes it so: %20 is a name with a percent.
        return f"file:{path}" if path.startswith("/") else path
    scheme = like.partition("://")[0]
    own, _, rest = location.partition("://")
    known = _HADOOP.get(own, own)
    if own == "s3" and scheme in _S3:
        known = scheme  # the cluster uses the name that is in the file
    return f"{known}://{rest.rstrip('/')}"


def is_operator_metadata(path: str) -> bool:
    parts = path.split("/")
    return len(parts) == 5 and parts[0] == "state" and parts[2:4] == [OPERATOR_METADATA, "v2"]


def moved_operator_metadata(data: bytes, location: str, like: str | None = None) -> bytes:
    """Return v2 operator metadata whose schema files are below `location`.

    `like` is a path that Hadoop wrote, for a file whose own paths belong to another storage.
    """
    line, _, body = decode(data).partition("\n")
    fields = parse_json_object(body, "the operator metadata")
    stores = fields.get("stateStoreInfo", [])
    if not isinstance(stores, list) or not all(isinstance(store, dict) for store in stores):
        raise MalformedFile(f"stateStoreInfo is not a list of stores: {shorten(repr(stores))}")
    for store in stores:
        for key in ("stateSchemaFilePaths", "stateSchemaFilePath"):
            if key in store:
                store[key] = _each(store[key], lambda path: _below(path, "/state/", location, like))
    return f"{line}\n{render_json(fields)}".encode()


def moved_schema_log(data: bytes, location: str) -> bytes:
    """Return a Delta source's schema log with the source's folder in the new checkpoint."""
    return _schema_log(data, lambda path: _below(path, "/sources/", location))


def renamed_schema_log(data: bytes, source: str) -> bytes:
    """Return a Delta source's schema log with another folder name."""

    def renamed(path: str) -> str:
        before, folder, _ = path.rpartition("/sources/")
        return f"{before}{folder}{source}" if folder else path

    return _schema_log(data, renamed)


def _schema_log(data: bytes, change: Callable[[str], str]) -> bytes:
    lines = lines_of(decode(data))
    moved = []
    for line in lines:
        if line.startswith("{"):
            fields = parse_json_object(line, "a line of the log")
            path = fields.get("sourceMetadataPath")
            if isinstance(path, str):
                fields["sourceMetadataPath"] = change(path)
                line = render_json(fields)
        moved.append(line)
    return "\n".join(moved).encode()


def _each(value: Any, change: Any) -> Any:
    return [change(item) for item in value] if isinstance(value, list) else change(value)


def _below(path: Any, folder: str, location: str, like: str | None = None) -> str:
    if not isinstance(path, str):
        raise MalformedFile(f"the schema paths are {shorten(repr(path))}")
    at = path.rfind(folder)
    return path if at < 0 else hadoop_root(location, like or path) + path[at:]


def parse_moves(pairs: Sequence[str]) -> Moves:
    moves = []
    for pair in pairs:
        old, equals, new = pair.partition("=")
        if not (old and equals and new):
            raise WrongUse(
                f"--rehome {pair!r} is not OLD=NEW",
                do="Write it as --rehome /old/folder=/new/folder.",
            )
        moves.append((old.rstrip("/"), new.rstrip("/")))
    return moves


def moved_source_log(data: bytes, moves: Moves) -> tuple[bytes, int]:
    """Return a file source's log with moved input files, and their number."""
    files = parse_source_log(data)
    moved = [_moved_file(file, moves) for file in files]
    count = sum(a is not b for a, b in zip(files, moved, strict=True))
    return (render_log(moved) if count else data), count


def moved_sink_log(data: bytes, moves: Moves) -> tuple[bytes, int]:
    """Return a file sink's log with moved output files, and their number."""
    files = parse_sink_log(data)
    moved = [_moved_file(file, moves) for file in files]
    count = sum(a is not b for a, b in zip(files, moved, strict=True))
    return (render_log(moved, data.endswith(b"\n")) if count else data), count


_Logged = TypeVar("_Logged", SourceFile, SinkFile)


def _moved_file(file: _Logged, moves: Moves) -> _Logged:
    path = moved_place(file.path, moves)
    if path is None:
        return file
    return replace(file, path=path, text=render_json({**json.loads(file.text), "path": path}))


def moved_place(path: str, moves: Moves) -> str | None:
    """Return the new path of a file in a log; None where no move applies to it."""
    found = (_moved_path(path, old, new) for old, new in moves)
    return next((place for place in found if place is not None), None)


def _moved_path(path: str, old: str, new: str) -> str | None:
    """Return the moved path, URI-encoded with its scheme; OLD and NEW are as people write them."""
    readable = unquote(path)
    for form in (readable, _without_scheme(readable)):
        if form == old or form.startswith(old + "/"):
            rest = form[len(old) :]
            return _uri(new) + quote(rest, safe=_SAFE)
    return None


def _without_scheme(path: str) -> str:
    local = path.startswith("file:")
    return "/" + path[len("file:") :].lstrip("/") if local else path


def _uri(place: str) -> str:
    path = local_path(place)
    if path is None:
        return place
    return "file://" + quote(path, safe=_SAFE)


def moved_note(data: bytes, moves: Moves) -> bytes:
    """Return a start note whose sources and sink have their new locations.

    Later starts compare their folders with the note; without this, the move would look like new
    code.
    """
    text = decode(data)
    for old, new in moves:
        for known, now in ((old, new), (quote(old, safe=_SAFE), quote(new, safe=_SAFE))):
            # Only complete names match: /data/in is not a part of /data/input.
            found = re.escape(json.dumps(known)[1:-1]) + r"(?=[/\]\\,;)\"'\s]|$)"
            text = re.sub(found, lambda _, now=now: json.dumps(now)[1:-1], text)  # type: ignore[misc]
    return text.encode()
