"""Gathers what the doctor judges by: every log entry, the small files, and which of them fail.

A file that cannot be read or understood becomes a fault; nothing stops the rest.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from floodmark.checkpoint.checksums.sidefiles import agrees, is_itself_damaged, without_flips
from floodmark.checkpoint.commits import parse_commit
from floodmark.checkpoint.conf_keys import STATE_CODEC
from floodmark.checkpoint.dstreams.folder import graph_files
from floodmark.checkpoint.evidence import (
    Evidence,
    Fault,
    NotedStart,
    log_entry,
    side_file,
)
from floodmark.checkpoint.layout import (
    METADATA,
    OFFSETS,
    SOURCES,
    STARTS,
    FileInfo,
    batch_id,
    names_in,
    source_ids,
)
from floodmark.checkpoint.metadata import parse_metadata, parse_operator_metadata
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.checkpoint.offsets import parse_offsets
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.source_kinds import with_said_kinds
from floodmark.checkpoint.state_chain import StateIndex, Steps, StoreChain, next_batch
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
from floodmark.errors import (
    CannotRead,
    FileGone,
    FloodmarkError,
    MalformedFile,
    UnknownVersion,
    WrongUse,
)
from floodmark.limits import current, over_limit
from floodmark.storage.files import Files, Folder, Listing, local_path, plain_path
from floodmark.storage.load import Entries, load, load_glance

# A file source's compaction may reach hundreds of megabytes: it is parsed on --read-data.
_PARSED_AT_ONCE = 16 << 20
# As lenient as Java's, which Spark reads it with.
_UUID = re.compile("[0-9a-fA-F]{1,8}(-[0-9a-fA-F]{1,4}){3}-[0-9a-fA-F]{1,12}")
_Parser = Callable[[bytes], Any]


def glance(files: Files) -> Evidence:
    """What a listing and a handful of small files show: a scan looks at very many checkpoints."""
    kept = _Kept(files)
    found = Gathering(kept, load_glance(kept))
    if found.checkpoint.kind is Kind.DSTREAMS:
        found.passed_over()
    elif found.checkpoint.complete:
        found.logs()
        found.sources(names_only=True)
        found.operators()
    return found.evidence(False)


def gather(
    files: Files, share: float | None = None, said: Mapping[str, str] | None = None
) -> Evidence:
    """The evidence on one checkpoint. `share`: how much of the state to read, 1.0 for all. `said`:
    the kinds of sources, as the user names them.
    """
    kept = _Kept(files)
    checkpoint = load(kept, Entries.ALL)
    if said:
        checkpoint = with_said_kinds(checkpoint, said)
    found = Gathering(kept, checkpoint)
    if checkpoint.kind is Kind.DSTREAMS:
        found.dstreams()
    else:
        found.logs()
        found.sources()
        found.operators()
        found.older_versions()
        found.snapshots()
        found.spark_checksums()
        found.noted_starts()
        found.state_codecs()
    if share is not None and checkpoint.kind is Kind.DSTREAMS:
        from floodmark.diagnosis.saved_rdds import read_saved_rdds

        read_saved_rdds(found)
    elif share is not None:
        from floodmark.diagnosis.state_files import read_state

        read_state(found, share)
    found.side_files()
    found.copies()
    return found.evidence(share is not None)


def noted_starts(files: Files, checkpoint: Checkpoint, newest: int) -> Evidence:
    """A checkpoint that was read already, with the newest notes of starts and nothing else."""
    found = Gathering(_Kept(files), checkpoint)
    found.noted_starts(newest)
    return found.evidence(False)


class _Kept:
    """`Files` that remembers what was read, so that the logs are not read twice."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.root = files.root
        self.reads_cost = files.reads_cost
        self.contents: dict[str, bytes] = {}

    def list(self, folder: str = "", most: int | None = None) -> Listing:
        return self._files.list(folder, most)

    def level(self, folder: str = "") -> Folder:
        return self._files.level(folder)

    def read(self, path: str) -> bytes:
        return self._files.read(RelativePath(path))

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes | FloodmarkError]:
        found = self._files.read_many(map(RelativePath, paths))
        self.contents.update((path, data) for path, data in found.items() if type(data) is bytes)
        return found

    def plain_path(self, path: str) -> str | None:
        return plain_path(self._files, RelativePath(path))

    def below(self, folder: str) -> Files:
        return self._files.below(RelativePath(folder))


class Gathering:
    """Facts as they come in."""

    def __init__(self, files: _Kept, checkpoint: Checkpoint) -> None:
        self.files = files
        self.checkpoint = checkpoint
        self.sizes = {file.path: file.size for file in checkpoint.files}
        self.lineages: dict[str, Steps] = {}
        self.needs = self._chains()
        self.faults: dict[str, Fault] = {}
        self.positions: dict[int, tuple[SourceOffset, ...]] = {}
        self.tables: dict[str, tuple[FileInfo, ...]] = {}
        self.disagreeing: set[str] = set()
        self.cures: dict[str, bytes] = {}
        self.altered: set[str] = set()
        self.strays: dict[str, str] = {}
        self.checksums: dict[str, str] = {}
        self.schemas: set[str] = set()
        self.keyed: set[int] = set()
        self.seen_files: dict[str, int] = {}
        self.starts: tuple[NotedStart, ...] = ()
        self.codecs: frozenset[str] = frozenset()

    def evidence(self, read_data: bool) -> Evidence:
        return Evidence(
            self.checkpoint,
            _places(self.files.root),
            int(time.time() * 1000),
            MappingProxyType(self.faults),
            MappingProxyType(self.positions),
            MappingProxyType(self.tables),
            frozenset(self.disagreeing),
            MappingProxyType(self.cures),
            frozenset(self.altered),
            MappingProxyType(self.checksums),
            frozenset(self.schemas),
            MappingProxyType(self.seen_files),
            read_data,
            MappingProxyType(self.strays),
            starts=self.starts,
            codecs=self.codecs,
            lineages=MappingProxyType(self.lineages),
            keyed=frozenset(self.keyed),
        )

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Those that can be read; the others become faults."""
        wanted = list(paths)
        found = self.files.read_many(path for path in wanted if path not in self.files.contents)
        for path, data in found.items():
            if isinstance(data, FloodmarkError):
                self.fail(path, data)
        contents = self.files.contents
        return {path: contents[path] for path in wanted if path in contents}

    def fail(self, path: str, error: FloodmarkError) -> None:
        if isinstance(error, FileGone):
            return  # a running query removed it after it was listed
        reason = f"{error.what}: {error.why}" if isinstance(error, CannotRead) else error.what
        self.faults[path] = Fault(
            reason, isinstance(error, UnknownVersion), self.sizes.get(path) == 0
        )

    def parse(self, path: str, data: bytes, parser: _Parser) -> Any:
        try:
            return parser(data)
        except FloodmarkError as error:
            self.fail(path, error)
            return None

    def logs(self) -> None:
        for item in self.checkpoint.unreadable:
            entry = log_entry(item.path)
            if entry is None and item.path != METADATA:
                continue  # operator metadata: its own turn comes
            self.faults[item.path] = Fault(item.reason, empty=self.sizes.get(item.path) == 0)
            data = self.files.contents.get(item.path)
            if data is not None:
                self.parse(item.path, data, _log_parser(item.path))
        if self.checkpoint.query_id is not None and not _UUID.fullmatch(self.checkpoint.query_id):
            self.fail(METADATA, MalformedFile(f"the id {self.checkpoint.query_id!r} is no UUID"))
        for batch in self.checkpoint.offsets:
            self._positions_of(batch)

    def _positions_of(self, batch: int) -> None:
        try:
            self.positions[batch] = self.checkpoint.sources_of(batch)
        except MalformedFile as error:
            self.fail(f"{OFFSETS}/{batch}", error)

    def sources(self, names_only: bool = False) -> None:
        newest = self.positions.get(max(self.positions, default=-1), ())
        kinds = {source.id: source for source in newest}
        for name in source_ids(self.checkpoint.files):
            source = kinds.get(name)
            if source is not None and about(source).lists_files:
                self._file_source(name, names_only)
            elif not names_only:
                self._source_start(name, source)

    def _file_source(self, name: str, names_only: bool) -> None:
        folder = f"{SOURCES}/{name}"
        names = names_in(self.checkpoint.files, folder)
        ids = [entry for entry in map(log_id, names) if entry is not None]
        if ids:
            self.seen_files[name] = max(ids)
        if names_only:
            return
        paths = [f"{folder}/{entry}" for entry in names_to_read(names)]
        small = [path for path in paths if self.sizes.get(path, 0) <= _PARSED_AT_ONCE]
        for path in paths:
            if self.sizes.get(path, 0) > current().sizes["file-log"]:
                self.fail(path, over_limit(path, self.sizes[path], "file-log"))
        for path, data in self.read(small).items():
            self.parse(path, data, partial(_parse_entry, path))
            if path not in self.faults and self._is_cut_entry(path, data):
                self.faults[path] = Fault("it names no file, and Spark writes no such entry")

    def _is_cut_entry(self, path: str, data: bytes) -> bool:
        """A list of files that ends before its first; a mend leaves such a list as well."""
        if data.strip() != _EMPTY_LIST:
            return False
        side = side_file(path)
        if side not in self.sizes:
            return data != _EMPTY_LIST
        return not any(agrees(sums, data) for sums in self.read([side]).values())

    def _source_start(self, name: str, source: SourceOffset | None) -> None:
        path = f"{SOURCES}/{name}/0"
        if path not in self.sizes:
            return
        for found, data in self.read([path]).items():
            if not data:
                self.faults[found] = Fault("the file is empty", empty=True)
            elif source is not None and type(source.offset) is int:
                self.parse(found, data, parse_rate_initial)
            elif source is not None:
                self.parse(found, data, about(source).check_initial)

    def operators(self) -> None:
        from floodmark.state.shapes.schema import parse_schema

        described, schemas = [], []
        for path in self.sizes:
            parts = path.split("/")
            name = parts[-1]
            if parts[0] != "state" or len(parts) < 4 or name.startswith("."):
                continue
            if path.endswith("/_metadata/schema") or parts[2] == "_stateSchema":
                schemas.append(path)
            elif parts[2] == "_metadata":
                described.append(path)
        for path, data in self.read(described).items():
            self.parse(path, data, parse_operator_metadata)
        for path, data in self.read(schemas).items():
            schema = self.parse(path, data, parse_schema)
            if schema is None:
                continue
            self.schemas.add(path)
            # A type that is not known yet is no fault of the file.
            with suppress(MalformedFile, ValueError):
                if schema.has_keys:
                    self.keyed.add(int(path.split("/")[1]))

    def _chains(self) -> tuple[StoreChain, ...]:
        index = StateIndex(self.checkpoint, lineage=lambda file: self.lineages.get(file.path))
        return index.chains(next_batch(self.checkpoint) or 0)

    def older_versions(self) -> None:
        """With unique ids: the versions that no commit tells of any more."""
        from floodmark.state.files.rocksdb import parse_changelog

        newest = [chain.files[-1].path for chain in self.needs if chain.begins_before_the_commits]
        for path, data in self.read(newest).items():
            found = self.parse(path, data, parse_changelog)
            if found is not None:
                self.lineages[path] = found.lineage
        if self.lineages:
            self.needs = self._chains()

    def snapshots(self) -> None:
        """What the zips name that the next start unpacks."""
        bases = [need.files[0] for need in self.needs if need.files]
        zips = [file.path for file in bases if file.kind == "zip" and file.size != 0]
        for path, data in self.read(zips).items():
            self.snapshot(path, data)

    def snapshot(self, path: str, data: bytes) -> Any:
        from floodmark.state.files.rocksdb import read_snapshot
        from floodmark.statestore.manifests import tables_of

        found = self.parse(path, data, read_snapshot)
        if found is not None:
            self.tables[path] = tables_of(path, found)
        return found

    def spark_checksums(self) -> None:
        """`<file>.crc`, as Spark 4.1 and later write it, of the files at the chains' ends."""
        ends = {file.path for need in self.needs for file in (*need.files[:1], *need.files[-1:])}
        for path, data in self.read(
            f"{end}.crc" for end in ends if f"{end}.crc" in self.sizes
        ).items():
            self.spark_checksum(path, data)

    def spark_checksum(self, path: str, data: bytes) -> int | None:
        """The CRC-32C that Spark wrote, if its size fits the file."""
        checksum = self.parse(path, data, _parse_checksum)
        if checksum is None:
            return None
        value, size = checksum
        main = path.removesuffix(".crc")
        found = self.sizes.get(main, size)
        if found != size:
            self.checksums[main] = f"it has {found:,} bytes, and Spark wrote {size:,}"
            return None
        return int(value)

    def side_files(self) -> None:
        sides = {
            side: path for path in self.files.contents if (side := side_file(path)) in self.sizes
        }
        for side, data in self.read(sides).items():
            self.check_side(sides[side], self.files.contents[sides[side]], data)

    def copies(self) -> None:
        """Offset entries that were overwritten by another's: nobody edits one into that."""
        held = {
            path: data
            for path, data in self.files.contents.items()
            if (entry := log_entry(path)) is not None and entry[0] == OFFSETS
        }
        for path in self.altered & held.keys():
            for other, data in held.items():
                if other != path and data == held[path] and other not in self.altered:
                    self.fail(path, MalformedFile(f"it holds what {other} holds"))
                    self.positions.pop(int(path.split("/")[1]), None)

    def check_side(self, path: str, data: bytes, side: bytes) -> bool:
        """True where the bytes are those that the side file was written for."""
        if agrees(side, data):
            return True
        self.disagreeing.add(path)
        mended = without_flips(side, data)
        if mended is not None:
            self.cures[path] = mended
        elif not is_itself_damaged(side, data):
            self.altered.add(path)
        return False

    def noted_starts(self, newest: int | None = None) -> None:
        """Who has started here, by floodmark's notes; one that cannot be read tells nothing."""
        paths = [
            (number, path)
            for path in self.sizes
            if path.startswith(f"{STARTS}/")
            and (number := batch_id(path[len(STARTS) + 1 :].removesuffix(".json"))) is not None
        ]
        found = []
        chosen = sorted(paths)[-newest:] if newest else sorted(paths)
        contents = self.files.read_many(path for _, path in chosen)
        for path, data in contents.items():
            try:
                note = json.loads(data) if isinstance(data, bytes) else None
            except (ValueError, RecursionError):
                continue
            if not isinstance(note, dict):
                continue
            query, run = note.get("query_id"), note.get("run_id")
            if isinstance(query, str) and isinstance(run, str):
                found.append(NotedStart(path, query, run, note))
        self.starts = tuple(found)

    def state_codecs(self) -> None:
        """Where entries disagree on the codec, the files tell which one they are packed with."""
        entries = self.checkpoint.offsets.values()
        if len({entry.metadata.conf.get(STATE_CODEC) for entry in entries if entry.metadata}) < 2:
            return
        from floodmark.state.files.framing import codec_of

        found = set()
        for path in {file.path for need in self.needs for file in need.files if file.kind != "zip"}:
            try:
                found.add(codec_of(self.files.read(path)))
            except FloodmarkError:
                return  # damage, which is told of elsewhere: then they prove nothing
        self.codecs = frozenset(found)

    def passed_over(self) -> None:
        """The DStreams files that Spark passes over before it comes to one that it can read."""
        for item in self.checkpoint.unreadable:
            self.faults[item.path] = Fault(item.reason, empty=self.sizes.get(item.path) == 0)

    def dstreams(self) -> None:
        """Every file that Spark may fall back to: those before the first sound one are known."""
        from floodmark.storage.dstreams import MOST_READ, read_graph_file

        graphs = [file.path for file in graph_files(self.checkpoint.files)]
        for path in graphs[-MOST_READ:]:
            try:
                read_graph_file(self.files, path)
            except WrongUse:
                raise
            except FloodmarkError as error:
                self.fail(path, error)


def _log_parser(path: str) -> _Parser:
    if path == METADATA:
        return parse_metadata
    return _parse_whole_offsets if path.startswith(OFFSETS) else parse_commit


_EMPTY_LIST = render_log(())


def _parse_entry(path: str, data: bytes) -> None:
    """An entry of a file source's log, whose lines say which entry they are of."""
    name = path.rsplit("/", 1)[1]
    own = log_id(name)
    for file in parse_source_log(data):
        if file.batch_id != own and not (name.endswith(COMPACT) and file.batch_id < (own or 0)):
            raise MalformedFile(f"it holds a line of entry {file.batch_id}")


def _parse_whole_offsets(data: bytes) -> None:
    for source, text in parse_offsets(data).offsets:
        read_source_offset(source, text)


def _parse_checksum(data: bytes) -> tuple[int, int]:
    from floodmark.checkpoint.text import decode, long_of, parse_json_object

    fields = parse_json_object(decode(data), "the checksum file")
    return (
        long_of(fields, "value", "the checksum file"),
        long_of(fields, "mainFileSize", "the checksum file"),
    )


def _places(root: str) -> tuple[str, ...]:
    local = local_path(root)
    if local is None:
        return (root.rstrip("/"),)
    # Spark writes a path as it was given; its links may be resolved by whoever looks.
    return str(Path(local).absolute()), str(Path(local).resolve())
