"""Reads the file source's offsets: the newest entry of its own list of seen files. Pure.

`{"logOffset":12}` (FileStreamSourceOffset); Spark 2.0 and 2.1 wrote the bare number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from floodmark.checkpoint.text import long_of, shorten
from floodmark.connectors.source import Recognised, SourceKind, Traces, arrow, has_fields, plain
from floodmark.errors import MalformedFile

FILE_SINKS = frozenset({"csv", "json", "parquet", "orc", "text", "avro"})
"""The names of file sinks in format()."""
FILE_SOURCES = FILE_SINKS | {"xml", "binaryfile"}
_FORM = frozenset({"logOffset"})


class FileSource(SourceKind):
    name = "file"
    formats = FILE_SOURCES
    no_option = "A file source has no starting option: its list of seen files is its position."
    unit = "files"
    lists_files = True
    can_be_asked = True
    tells_lag = True
    start_rules = ("input-file-gone",)

    def recognise(self, traces: Traces) -> Recognised | None:
        if has_fields(traces.offset, _FORM) and not traces.may_be_pythons:
            return self.certain("the offset names an entry of a list")
        if has_fields(traces.offset, _FORM) and self.began(traces):
            why = "the offset names an entry of a list, with spaces as Python puts them"
            return self.probable(why)
        if type(traces.offset) is int and self.began(traces):
            why = "a bare number beside a list of files, as Spark 2.1 wrote it"
            return self.certain(why)
        return None

    def began(self, traces: Traces) -> bool:
        return traces.initial_body.startswith(b'{"path"')

    def check_offset(self, offset: Any) -> None:
        if isinstance(offset, dict):
            parse_log_offset(offset)

    def explain(self, end: Any, start: Any) -> list[str]:
        return [f"log entry {arrow(_entry(start), _entry(end))}"]

    def reached(self, end: Any) -> str:
        return f"files: entry {_entry(end)}"

    def went_back(self, was: Any, now: Any) -> Iterator[tuple[str, str, str]]:
        try:
            before, after = parse_log_offset(was), parse_log_offset(now)
        except MalformedFile:
            return  # another rule reports the entry itself
        if after < before:
            yield "", str(before), str(after)

    def place(self, offset: Any) -> tuple[int, ...] | None:
        return (parse_log_offset(offset),)

    def count(self, start: Any, end: Any) -> int | None:
        return None  # an entry lists any number of files; only the list knows it


def parse_log_offset(offset: Any) -> int:
    """Return the newest entry of the source's own log. This is not a batch id."""
    if type(offset) is int:  # 2.0 and 2.1 wrote the bare number
        return offset
    if not isinstance(offset, dict):
        raise MalformedFile(f"not a file source's offset: {shorten(repr(offset))}")
    return long_of(offset, "logOffset", "the file source's offset")


def _entry(offset: Any) -> str | None:
    return str(offset.get("logOffset")) if isinstance(offset, dict) else plain(offset)


KIND = FileSource()
