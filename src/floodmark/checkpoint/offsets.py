"""The offset log: what a batch is going to read, written before it runs.

`offsets/N` holds the END offsets of batch N; its start is the entry before it.
v1 has a line a source in plan order; v2 (Spark 4.2) has `name:offset` lines.
The text that Spark wrote is kept: it compares offsets by their JSON string.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from floodmark.checkpoint.conf_keys import SOURCE_EVOLUTION
from floodmark.checkpoint.text import (
    compact_json,
    decode,
    lines_of,
    long_of,
    parse_json,
    parse_json_object,
    shorten,
    split_version,
)
from floodmark.errors import MalformedFile

NEWEST_VERSION = 2
NO_OFFSET = "-"
_MOST_LINES = 100_000
# A long log repeats one conf thousands of times: it is parsed once and shared.
_AS_SPARK_WRITES = re.compile(
    r'\{"batchWatermarkMs":(-?[0-9]{1,18}),"batchTimestampMs":(-?[0-9]{1,18}),"conf":'
)
_CLOSING = {"{": "}", "[": "]"}


@dataclass(frozen=True)
class OffsetMetadata:
    """Line 2 of an entry: the settings and times of the batch, also for a rerun."""

    batch_watermark_ms: int
    batch_timestamp_ms: int
    conf: Mapping[str, str]
    text: str


@dataclass(frozen=True)
class OffsetEntry:
    version: int
    metadata: OffsetMetadata | None
    """None in continuous mode, because it writes an empty line."""
    offsets: tuple[tuple[str, str | None], ...]
    """(source id, the offset's text as its source wrote it, or None) in file order."""
    ends_with_newline: bool = False
    newline: str = "\n"
    """CRLF if an editor on Windows saved the file; Spark reads that too."""

    def of(self, source: str) -> str | None:
        return next((text for name, text in self.offsets if name == source), None)


def parse_offsets(data: bytes) -> OffsetEntry:
    text = decode(data)
    if "\r" in text:
        return _parse_crlf(text)
    return _parse(text)


def _parse_crlf(text: str) -> OffsetEntry:
    plain = text.replace("\r\n", "\n")
    if "\r" in plain or plain.count("\n") != text.count("\r\n"):
        raise MalformedFile("the line ends are mixed (LF, CRLF, CR)")
    return replace(_parse(plain), newline="\r\n")


def _parse(text: str) -> OffsetEntry:
    if text.count("\n") > _MOST_LINES:
        raise MalformedFile(f"the file has {text.count(chr(10)):,} lines; each is a source")
    version, rest = split_version(text, NEWEST_VERSION)
    lines = lines_of(rest)
    if not lines:
        raise MalformedFile("cut short after the version line: the batch's metadata is missing")
    if lines[0]:
        metadata = parse_offset_metadata(lines[0])
    elif version == 1:
        metadata = None
    else:
        raise MalformedFile("the metadata line is empty; a v2 offset entry needs it")
    offsets = _positional(lines[1:]) if version == 1 else _named(lines[1:])
    _refuse_cut_short(offsets)
    return OffsetEntry(version, metadata, offsets, rest.endswith("\n"))


def _refuse_cut_short(offsets: tuple[tuple[str, str | None], ...]) -> None:
    # Only the brackets are looked at: an offset is its source's own text, and most logs
    # are read for their newest entry alone, which `sources` then parses in full.
    for name, text in offsets:
        if text and _CLOSING.get(text[0], text.rstrip()[-1:]) != text.rstrip()[-1:]:
            raise MalformedFile(f"the offset of source {name} is cut short: {shorten(text)!r}")


def _positional(lines: list[str]) -> tuple[tuple[str, str | None], ...]:
    return tuple(
        (str(index), None if line == NO_OFFSET else line) for index, line in enumerate(lines)
    )


def _named(lines: list[str]) -> tuple[tuple[str, str | None], ...]:
    named = []
    for line in lines:
        name, colon, offset = line.partition(":")
        if not colon:
            raise MalformedFile(f"a v2 offset line has no colon: {shorten(line)!r}")
        named.append((name, None if offset == NO_OFFSET else offset))
    return tuple(named)


def parse_offset_metadata(text: str) -> OffsetMetadata:
    usual = _AS_SPARK_WRITES.match(text)
    conf = _parse_conf(text[usual.end() :]) if usual else None
    if usual and conf is not None:
        return OffsetMetadata(int(usual[1]), int(usual[2]), conf, text)
    fields = parse_json_object(text, "the metadata line")
    return OffsetMetadata(
        long_of(fields, "batchWatermarkMs", "the metadata line", 0),
        long_of(fields, "batchTimestampMs", "the metadata line", 0),
        _frozen_conf(fields.get("conf", {})),
        text,
    )


@lru_cache(maxsize=8)
def _parse_conf(rest: str) -> Mapping[str, str] | None:
    """Return the conf at the end of the line, or None if the line has another form than Spark's."""
    try:
        return _frozen_conf(parse_json(rest[:-1], "conf")) if rest[-1:] == "}" else None
    except MalformedFile:
        return None


def _frozen_conf(conf: Any) -> Mapping[str, str]:
    if not isinstance(conf, dict):
        raise MalformedFile(f"conf is not a JSON object: {shorten(repr(conf))}")
    return MappingProxyType({key: _conf_text(value) for key, value in conf.items()})


def _conf_text(value: Any) -> str:
    # Spark writes strings; a person who edited the file may have written other values.
    return value if isinstance(value, str) else str(value).lower()


def render_offsets(entry: OffsetEntry) -> bytes:
    lines = [f"v{entry.version}", entry.metadata.text if entry.metadata else ""]
    for name, offset in entry.offsets:
        text = NO_OFFSET if offset is None else offset
        lines.append(text if entry.version == 1 else f"{name}:{text}")
    if entry.ends_with_newline:
        lines.append("")
    return entry.newline.join(lines).encode()


def with_offset(entry: OffsetEntry, source: str, offset: str | None) -> OffsetEntry:
    """Return the entry with one source moved and everything else unchanged."""
    return replace(
        entry,
        offsets=tuple((name, offset if name == source else old) for name, old in entry.offsets),
    )


def with_conf(entry: OffsetEntry, changes: Mapping[str, str]) -> OffsetEntry:
    """Return the entry with some settings changed and everything else unchanged."""
    metadata = entry.metadata
    if metadata is None:
        return entry
    fields = parse_json_object(metadata.text, "the metadata line")
    fields["conf"] = {**metadata.conf, **changes}
    return replace(entry, metadata=parse_offset_metadata(compact_json(fields)))


def named_entry(entry: OffsetEntry, names: Mapping[str, str]) -> OffsetEntry:
    """Return the entry in version 2: lines by name, without sources that have no offset."""
    assert entry.metadata is not None
    fields = parse_json_object(entry.metadata.text, "the metadata line")
    fields["conf"] = {**entry.metadata.conf, SOURCE_EVOLUTION: "true"}
    fields.setdefault("sourceMetadataInfo", {})
    return OffsetEntry(
        2,
        parse_offset_metadata(compact_json(fields)),
        tuple(
            (names.get(source, source), text) for source, text in entry.offsets if text is not None
        ),
    )


def with_watermark(entry: OffsetEntry, watermark_ms: int) -> OffsetEntry:
    """Return the entry with another watermark and everything else unchanged."""
    if entry.metadata is None:
        return entry
    fields = parse_json_object(entry.metadata.text, "the metadata line")
    fields["batchWatermarkMs"] = watermark_ms
    return replace(entry, metadata=parse_offset_metadata(compact_json(fields)))
