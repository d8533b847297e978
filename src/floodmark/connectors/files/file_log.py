"""Parses the file source's list of seen files and the file sink's list of written ones.

Both are logs of one JSON line a file. Every tenth entry is `<id>.compact` and holds all earlier
ones. The source counts its own ids; the sink uses the query's batch ids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from floodmark.checkpoint.text import (
    decode,
    json_text,
    lines_of,
    long_of,
    parse_json_object,
    shorten,
    split_version,
)
from floodmark.errors import MalformedFile

COMPACT = ".compact"
SINK_LOG = "_spark_metadata"
"""The folder of the file sink's list, inside the output folder."""
_MISSING_TOLD = 1000
_LONGEST_INTERVAL = 1_000_000


@dataclass(frozen=True)
class SourceFile:
    """One input file, and the entry of the source's log that lists it."""

    path: str
    """The path as Spark writes it, URI-encoded."""
    timestamp: int
    batch_id: int
    text: str

    @property
    def readable_path(self) -> str:
        return unquote(self.path)


@dataclass(frozen=True)
class SinkFile:
    """One output file."""

    path: str
    size: int
    is_dir: bool
    action: str
    text: str


def parse_source_log(data: bytes) -> tuple[SourceFile, ...]:
    return tuple(_source_file(line) for line in _entries(data))


def parse_sink_log(data: bytes) -> tuple[SinkFile, ...]:
    return tuple(_sink_file(line) for line in _entries(data))


def render_log(files: Iterable[SourceFile | SinkFile], ends_with_newline: bool = False) -> bytes:
    """Return the log's bytes. Spark does not end the last line; a file that did keeps its end."""
    text = "\n".join(["v1", *(file.text for file in files)])
    return (text + "\n" * ends_with_newline).encode()


def _entries(data: bytes) -> list[str]:
    _, rest = split_version(decode(data), 1)
    return lines_of(rest)


def _source_file(line: str) -> SourceFile:
    fields = parse_json_object(line, "an entry")
    return SourceFile(
        _path(fields), long_of(fields, "timestamp", "an entry"), _batch_id(fields), line
    )


def _batch_id(fields: dict[str, Any]) -> int:
    return long_of(fields, "batchId", "an entry")


def _sink_file(line: str) -> SinkFile:
    fields = parse_json_object(line, "an entry")
    long_of(fields, "modificationTime", "an entry", 0)  # Spark reads it as a number
    return SinkFile(
        _path(fields),
        long_of(fields, "size", "an entry"),
        fields.get("isDir") is True,
        str(fields.get("action", "add")),
        line,
    )


def _path(fields: dict[str, Any]) -> str:
    path = fields.get("path")
    if not isinstance(path, str) or not path:
        raise MalformedFile(f"an entry has no path: {shorten(repr(fields))}")
    return path


def log_id(name: str) -> int | None:
    """Return the id in `12` or `9.compact`; None for every other name."""
    digits = name.removesuffix(COMPACT)
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 19 else None


def names_to_read(names: Iterable[str]) -> list[str]:
    """Return the entries that together list every file: the newest compaction and all later
    ones.
    """
    ids = {name: entry for name in names if (entry := log_id(name)) is not None}
    compacted = [entry for name, entry in ids.items() if name.endswith(COMPACT)]
    newest = max(compacted, default=-1)
    chosen = [name for name, entry in ids.items() if entry > newest]
    if compacted:
        chosen.append(f"{newest}{COMPACT}")
    return sorted(chosen, key=lambda name: ids[name])


def missing_ids(names: Iterable[str]) -> list[int]:
    """Return the first entries that are missing after the newest compaction."""
    chosen = names_to_read(names)
    if not chosen:
        return []
    ids = {entry for name in chosen if (entry := log_id(name)) is not None}
    first = min(ids) if chosen[0].endswith(COMPACT) else 0
    # A name in the folder can be any number, so the gap is not walked to its end.
    until = min(max(ids), first + len(ids) + _MISSING_TOLD)
    return [entry for entry in range(first, until) if entry not in ids][:_MISSING_TOLD]


def compact_interval(names: Iterable[str], configured: int = 10) -> int:
    """Return how often this log compacts; the files in the folder count before the setting."""
    compacted = sorted(
        entry for name in names if name.endswith(COMPACT) and (entry := log_id(name)) is not None
    )
    if len(compacted) >= 2:
        return compacted[-1] - compacted[-2]
    if not compacted:
        return configured
    first = compacted[0] + 1
    if first <= configured:
        return first
    # A name can be any number, so the search for a divisor of a large prime ends early.
    until = min(first, _LONGEST_INTERVAL)
    return next((n for n in range(configured, until + 1) if first % n == 0), first)


def files_between(
    files: Iterable[SourceFile], after: int | None, until: int
) -> tuple[SourceFile, ...]:
    """Return the files of the offset range (after, until]; `after` None means from the
    beginning.
    """
    lowest = -1 if after is None else after
    return tuple(file for file in files if lowest < file.batch_id <= until)


def merge_source_logs(entries: Mapping[str, tuple[SourceFile, ...]]) -> tuple[SourceFile, ...]:
    """Return every file that the source has seen, in the order in which it saw them."""
    return tuple(file for name in names_to_read(entries) for file in entries[name])


def with_root(data: bytes, root: str, files: Collection[str]) -> bytes:
    """Return an entry of a file sink's log for a copy of its folder at `root`, a URL.

    The entry names its files by their whole paths, and Spark looks for them nowhere else. `files`
    are the paths inside the folder; a path that leads to none of them stays as it is.
    """
    return render_log(_moved(file, root, files) for file in parse_sink_log(data))


def _moved(file: SinkFile, root: str, files: Collection[str]) -> SinkFile:
    parts = file.path.split("/")
    for start in range(len(parts)):
        inside = "/".join(parts[start:])
        if unquote(inside) in files:
            path = f"{root}/{inside}"
            fields = {**parse_json_object(file.text, "an entry"), "path": path}
            return replace(file, path=path, text=json_text(fields, separators=(",", ":")))
    return file
