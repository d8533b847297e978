"""Gathers evidence from the logs: offsets, commits, the sources' own, and notes of starts."""

from __future__ import annotations

import json
import re
from functools import partial

from floodmark.checkpoint.checksums.sidefiles import agrees
from floodmark.checkpoint.commits import parse_commit
from floodmark.checkpoint.evidence import Fault, NotedStart, log_entry
from floodmark.checkpoint.layout import (
    METADATA,
    OFFSETS,
    SOURCES,
    STARTS,
    batch_id,
    names_in,
    side_file,
    source_ids,
)
from floodmark.checkpoint.metadata import parse_metadata
from floodmark.checkpoint.offsets import parse_offsets
from floodmark.connectors.files.file_log import (
    COMPACT,
    log_id,
    names_to_read,
    parse_source_log,
    render_log,
)
from floodmark.connectors.rate import parse_rate_initial
from floodmark.connectors.registry import about, read_source_offset
from floodmark.connectors.source import SourceOffset
from floodmark.diagnosis.facts import Gathering, Parser
from floodmark.errors import MalformedFile
from floodmark.limits import current, over_limit

# A file source's compaction may reach hundreds of megabytes: it is parsed on --read-data.
_PARSED_AT_ONCE = 16 << 20
# This is as lenient as Java's parser, which Spark uses.
_UUID = re.compile("[0-9a-fA-F]{1,8}(-[0-9a-fA-F]{1,4}){3}-[0-9a-fA-F]{1,12}")
_EMPTY_LIST = render_log(())


def gather_logs(found: Gathering) -> None:
    for item in found.checkpoint.unreadable:
        entry = log_entry(item.path)
        if entry is None and item.path != METADATA:
            continue  # operator metadata is read later
        found.faults[item.path] = Fault(item.reason, empty=found.sizes.get(item.path) == 0)
        data = found.files.contents.get(item.path)
        if data is not None:
            found.parse(item.path, data, _log_parser(item.path))
    if found.checkpoint.query_id is not None and not _UUID.fullmatch(found.checkpoint.query_id):
        found.fail(METADATA, MalformedFile(f"the id {found.checkpoint.query_id!r} is not a UUID"))
    for batch in found.checkpoint.offsets:
        _positions_of(found, batch)


def _positions_of(found: Gathering, batch: int) -> None:
    try:
        found.positions[batch] = found.checkpoint.sources_of(batch)
    except MalformedFile as error:
        found.fail(f"{OFFSETS}/{batch}", error)


def gather_sources(found: Gathering, names_only: bool = False) -> None:
    newest = found.positions.get(max(found.positions, default=-1), ())
    kinds = {source.id: source for source in newest}
    for name in source_ids(found.checkpoint.files):
        source = kinds.get(name)
        if source is not None and about(source).lists_files:
            _file_source(found, name, names_only)
        elif not names_only:
            _source_start(found, name, source)


def _file_source(found: Gathering, name: str, names_only: bool) -> None:
    folder = f"{SOURCES}/{name}"
    names = names_in(found.checkpoint.files, folder)
    ids = [entry for entry in map(log_id, names) if entry is not None]
    if ids:
        found.seen_files[name] = max(ids)
    if names_only:
        return
    paths = [f"{folder}/{entry}" for entry in names_to_read(names)]
    small = [path for path in paths if found.sizes.get(path, 0) <= _PARSED_AT_ONCE]
    for path in paths:
        if found.sizes.get(path, 0) > current().sizes["file-log"]:
            found.fail(path, over_limit(path, found.sizes[path], "file-log"))
    for path, data in found.read(small).items():
        found.parse(path, data, partial(_parse_entry, path))
        if path not in found.faults and _is_cut_entry(found, path, data):
            found.faults[path] = Fault(
                "the entry names no file, and Spark never writes such an entry"
            )


def _is_cut_entry(found: Gathering, path: str, data: bytes) -> bool:
    """Whether a list of files ends before its first file; a repair leaves such a list, too."""
    if data.strip() != _EMPTY_LIST:
        return False
    side = side_file(path)
    if side not in found.sizes:
        return data != _EMPTY_LIST
    return not any(agrees(sums, data) for sums in found.read([side]).values())


def _source_start(found: Gathering, name: str, source: SourceOffset | None) -> None:
    path = f"{SOURCES}/{name}/0"
    if path not in found.sizes:
        return
    for start, data in found.read([path]).items():
        if not data:
            found.faults[start] = Fault("the file is empty", empty=True)
        elif source is not None and type(source.offset) is int:
            found.parse(start, data, parse_rate_initial)
        elif source is not None:
            found.parse(start, data, about(source).check_initial)


def gather_copies(found: Gathering) -> None:
    """Find offset entries that were overwritten by another entry, which no editing explains."""
    held = {
        path: data
        for path, data in found.files.contents.items()
        if (entry := log_entry(path)) is not None and entry[0] == OFFSETS
    }
    for path in found.altered & held.keys():
        for other, data in held.items():
            if other != path and data == held[path] and other not in found.altered:
                found.fail(path, MalformedFile(f"the content is that of {other}"))
                found.positions.pop(int(path.split("/")[1]), None)


def gather_starts(found: Gathering, newest: int | None = None) -> None:
    """Collect the starts in floodmark's notes; a note that cannot be read is skipped."""
    paths = [
        (number, path)
        for path in found.sizes
        if path.startswith(f"{STARTS}/")
        and (number := batch_id(path[len(STARTS) + 1 :].removesuffix(".json"))) is not None
    ]
    starts = []
    chosen = sorted(paths)[-newest:] if newest else sorted(paths)
    contents = found.files.read_many(path for _, path in chosen)
    for path, data in contents.items():
        try:
            note = json.loads(data) if isinstance(data, bytes) else None
        except (ValueError, RecursionError):
            continue
        if not isinstance(note, dict):
            continue
        query, run = note.get("query_id"), note.get("run_id")
        if isinstance(query, str) and isinstance(run, str):
            starts.append(NotedStart(path, query, run, note))
    found.starts = tuple(starts)


def _log_parser(path: str) -> Parser:
    if path == METADATA:
        return parse_metadata
    return _parse_whole_offsets if path.startswith(OFFSETS) else parse_commit


def _parse_entry(path: str, data: bytes) -> None:
    """Check an entry of a file source's log, whose lines name their entry."""
    name = path.rsplit("/", 1)[1]
    own = log_id(name)
    for file in parse_source_log(data):
        if file.batch_id != own and not (name.endswith(COMPACT) and file.batch_id < (own or 0)):
            raise MalformedFile(f"the file has a line of entry {file.batch_id}")


def _parse_whole_offsets(data: bytes) -> None:
    for source, text in parse_offsets(data).offsets:
        found = read_source_offset(source, text)
        about(found).check_offset(found.offset)
