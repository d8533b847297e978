"""Loads a checkpoint from files: lists once, reads only what is needed, tolerates bad files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeVar

from floodmark.checkpoint.commits import parse_commit
from floodmark.checkpoint.layout import (
    COMMITS,
    METADATA,
    NOTES,
    OFFSETS,
    OPERATOR_METADATA,
    SIZE_UNKNOWN,
    SOURCES,
    STARTS,
    STATE,
    STATE_SCHEMA,
    FileInfo,
    batch_id,
    batch_ids,
    is_dstreams_checkpoint,
    operator_metadata_paths,
)
from floodmark.checkpoint.metadata import parse_metadata, parse_operator_metadata
from floodmark.checkpoint.model import Checkpoint, Kind, Unreadable
from floodmark.checkpoint.offsets import OffsetEntry, parse_offsets
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.registry import about, has_form_of_several, read_source_offset
from floodmark.connectors.source import Traces, parse_offset_text
from floodmark.errors import (
    CannotRead,
    FileGone,
    FloodmarkError,
    MalformedFile,
)
from floodmark.storage.files import Files, Listing

# One page of an S3 listing.
_LISTED_WHERE_IT_COSTS = 1000
_TOPICS = re.compile(r'\{"[^"]+":\{"[0-9]+":')  # a topic with partitions: Kafka's or Event Hubs'
_CHECKED_WHERE_FREE = 500
_Entry = TypeVar("_Entry")
_GONE = "gone between listing and reading: a running query removes old entries"


class Entries(Enum):
    """The entries of the logs to read."""

    NEWEST = "the last planned batch, the one before it, the last committed one"
    ALL = "every batch that is still logged"


def load(
    files: Files,
    entries: Entries = Entries.NEWEST,
    batches: Iterable[int] = (),
    most_requests: int | None = None,
) -> Checkpoint:
    """Load the checkpoint at a location; `batches` are read in addition to `entries`.

    `most_requests`: where each read costs a request, descriptions beyond this number are not read;
    `Checkpoint.not_read` names them.
    """
    capped = files.reads_cost and entries is Entries.NEWEST
    listing = files.list(most=_LISTED_WHERE_IT_COSTS if capped else None)
    if not capped or listing.complete:
        left = most_requests - 1 if capped and most_requests else None
        batches = tuple(batches)
        found = load_listed(files, listing, entries, batches, left)
        if not capped and any(item.reason == _GONE for item in found.unreadable):
            # Entries that Spark keeps are gone: batches came faster than they could be read.
            return load_listed(files, files.list(), entries, batches)
        return found
    from floodmark.storage.listing.large_listing import list_frugally, list_operators

    if most_requests is None:
        listing = list_operators(files, listing, _LISTED_WHERE_IT_COSTS)
        return load_listed(files, listing, entries, batches)
    large = list_frugally(files, listing)
    left = max(0, most_requests - large.requests)
    return load_listed(files, large.listing, entries, batches, left, large.operators)


def load_glance(files: Files) -> Checkpoint:
    """Load the newest entries, and the state's description if one listing shows all files."""
    if not files.reads_cost:
        return load(files)
    listing = files.list(most=_LISTED_WHERE_IT_COSTS)
    if listing.complete:
        return load_listed(files, listing)
    from floodmark.storage.listing.large_listing import list_frugally

    large = list_frugally(files, listing)
    return load_listed(files, large.listing, left=0, operators=large.operators)


def load_logs(files: Files) -> Checkpoint:
    """Load every batch that is still logged, without the state, which may be huge."""
    from floodmark.storage.listing.large_listing import list_logs

    return load_listed(files, list_logs(files), Entries.ALL)


def load_listed(
    files: Files,
    listing: Listing,
    entries: Entries = Entries.NEWEST,
    batches: Iterable[int] = (),
    left: int | None = None,
    operators: frozenset[int] = frozenset(),
) -> Checkpoint:
    """Load a listed checkpoint; `left`: remaining requests, `operators`: known without files."""
    kind = _kind_of(files, listing.files)
    if kind is Kind.DSTREAMS:
        from floodmark.storage.dstreams import load_dstreams

        return load_dstreams(files, listing)
    reading = _Reading(files, listing, left)
    # A pipe or a link in place of an entry counts as an unreadable entry.
    there = (*listing.files, *(FileInfo(path, SIZE_UNKNOWN) for path, _ in listing.unreadable))
    offset_ids = batch_ids(there, OFFSETS)
    commit_ids = batch_ids(there, COMMITS)
    wanted = _wanted(files, offset_ids, commit_ids, entries, set(batches))
    described = _operator_paths(listing.files, max(offset_ids, default=None), operators)
    reading.fetch(
        [METADATA] * any(file.path == METADATA for file in listing.files)
        + [f"{OFFSETS}/{batch}" for batch in offset_ids if batch in wanted]
        + [f"{COMMITS}/{batch}" for batch in commit_ids if batch in wanted],
        described.values(),
    )
    if reading.misses_some:
        from floodmark.storage.listing.purged import newest_purged, without_purged

        purged = newest_purged(offset_ids, commit_ids, reading.is_gone)
        listing = without_purged(listing, purged)
        offset_ids = tuple(batch for batch in offset_ids if batch > purged)
        commit_ids = tuple(batch for batch in commit_ids if batch > purged)
    metadata = reading.parse(METADATA, parse_metadata)
    if metadata is None and not offset_ids and not commit_ids and not _has_logs(listing.files):
        from floodmark.storage.not_a_checkpoint import not_a_checkpoint

        raise not_a_checkpoint(files, listing.files, reading.reason(METADATA))
    offsets = reading.parse_log(OFFSETS, offset_ids, parse_offsets)
    initial = _initial_offsets(reading, listing.files, offsets.get(max(offset_ids, default=-1)))
    sound = _with_sound_sources(reading, offsets, initial)
    found = {
        operator: parsed
        for operator, path in described.items()
        if (parsed := reading.parse(path, parse_operator_metadata)) is not None
    }
    keyed = _keyed(reading, listing) if listing.complete else frozenset()
    noted = _noted_kinds(reading, listing.files, offsets, commit_ids)
    checkpoint = Checkpoint(
        files.root,
        kind,
        listing.files,
        listing.complete,
        metadata,
        offset_ids,
        commit_ids,
        sound,
        reading.parse_log(COMMITS, commit_ids, parse_commit),
        MappingProxyType(found),
        initial,
        reading.unreadable(),
        frozenset(reading.not_given),
        keyed,
        operator_folders=operators,
        not_read=reading.not_read(),
    )
    edited = any(Traces(None, None, data).has_lead_byte for data in initial.values())
    if not noted and not edited:
        return checkpoint
    from floodmark.checkpoint.source_kinds import with_disputes

    return with_disputes(checkpoint, noted)


def _noted_kinds(
    reading: _Reading,
    listed: tuple[FileInfo, ...],
    offsets: Mapping[int, OffsetEntry],
    commit_ids: tuple[int, ...],
) -> Mapping[str, str]:
    """Return the kinds in the last start's note, for sources whose offsets fit several kinds."""
    entry = offsets.get(max(offsets, default=-1))
    if entry is None or not any(file.path.startswith(f"{STARTS}/") for file in listed):
        return {}
    if not any(_is_alike(text) for _, text in entry.offsets):
        return {}
    from floodmark.checkpoint.source_kinds import noted_kinds

    return noted_kinds(entry, reading.acting_note(listed, commit_ids[-1] if commit_ids else None))


def _is_alike(text: str | None) -> bool:
    with suppress(MalformedFile):
        return text is not None and has_form_of_several(parse_offset_text(text))
    return False


def _has_logs(files: tuple[FileInfo, ...]) -> bool:
    return any(file.path.startswith((OFFSETS + "/", COMMITS + "/")) for file in files)


def _kind_of(files: Files, listed: tuple[FileInfo, ...]) -> Kind:
    tops = {file.path.split("/", 1)[0] for file in listed}
    if tops & {OFFSETS, COMMITS} or METADATA in tops:
        return Kind.STRUCTURED_STREAMING
    if any(is_dstreams_checkpoint(file.path) for file in listed):
        return Kind.DSTREAMS
    from floodmark.storage.not_a_checkpoint import not_a_checkpoint

    raise not_a_checkpoint(files, listed)


def _wanted(
    files: Files,
    offset_ids: tuple[int, ...],
    commit_ids: tuple[int, ...],
    entries: Entries,
    batches: set[int],
) -> set[int]:
    everything = set(offset_ids) | set(commit_ids)
    if entries is Entries.ALL or (
        # Where a read costs nothing, find damaged entries at once.
        not files.reads_cost and len(everything) <= _CHECKED_WHERE_FREE
    ):
        return everything
    return set(offset_ids[-2:]) | set(commit_ids[-1:]) | batches


def _operator_paths(
    files: tuple[FileInfo, ...], batch: int | None, unlisted: frozenset[int]
) -> dict[int, str]:
    """Return the path of each operator's description; `unlisted` ones have the usual path."""
    state = [file for file in files if file.path.startswith(f"{STATE}/")]
    described = [file for file in state if f"/{OPERATOR_METADATA}/" in file.path]
    operators = {batch_id(file.path.split("/", 2)[1]) for file in described}
    paths = {
        operator: operator_metadata_paths(described, operator, batch)
        for operator in operators
        if operator is not None
    }
    known = {operator: found[0] for operator, found in paths.items() if found}
    guessed = {
        operator: f"{STATE}/{operator}/{OPERATOR_METADATA}/metadata" for operator in unlisted
    }
    return dict(sorted({**guessed, **known}.items()))


def _keyed(reading: _Reading, listing: Listing) -> frozenset[int]:
    """Return the operators with files only in partition 0 whose schema has keys.

    A limit has one partition; a grouping that has lost the others has the same names.
    """
    alone: dict[str, list[str]] = {}
    several = set()
    for file in listing.files:
        if not file.path.startswith(f"{STATE}/"):
            continue
        operator, _, rest = file.path[len(STATE) + 1 :].partition("/")
        if operator in several:
            continue
        if rest.startswith(("0/", f"{STATE_SCHEMA}/")):
            if f"/{OPERATOR_METADATA}/schema" in rest or rest.startswith(f"{STATE_SCHEMA}/"):
                alone.setdefault(operator, []).append(file.path)
        elif not rest.startswith("_"):
            several.add(operator)
    schemas = {
        path: int(operator)
        for operator, paths in alone.items()
        if operator not in several and batch_id(operator) is not None
        for path in paths
        if not path.rsplit("/", 1)[1].startswith(".")
    }
    reading.fetch((), schemas)
    return frozenset(
        operator for path, operator in schemas.items() if _has_keys(reading.data(path))
    )


def _has_keys(schema: bytes | None) -> bool:
    from floodmark.state.shapes.schema import parse_schema

    # The doctor reports a schema that cannot be read.
    with suppress(MalformedFile, ValueError):
        return schema is not None and parse_schema(schema).has_keys
    return False


def _initial_offsets(
    reading: _Reading, files: tuple[FileInfo, ...], entry: OffsetEntry | None
) -> Mapping[str, bytes]:
    """Read `sources/<id>/0` where the offset does not show its kind: a number, none, Python's JSON,
    Kafka's form.
    """
    there = {file.path for file in files if file.path.startswith(SOURCES + "/")}
    asked = {
        source: path
        for source, text in (entry.offsets if entry else ())
        if (
            text is None
            or text.lstrip("-").isdecimal()
            or ": " in text
            # Event Hubs has Kafka's form; where requests are limited, both kinds are reported as
            # possible.
            or (reading.is_free and _TOPICS.match(text))
        )
        and (path := f"{SOURCES}/{source}/0") in there
    }
    reading.fetch((), asked.values())
    return MappingProxyType(
        {source: data for source, path in asked.items() if (data := reading.data(path)) is not None}
    )


def _with_sound_sources(
    reading: _Reading, offsets: Mapping[int, OffsetEntry], initial: Mapping[str, bytes]
) -> Mapping[int, OffsetEntry]:
    """Remove the entries whose offset text is damaged inside its brackets.

    Of very many entries only the newest is checked: it is the one that matters.
    """
    checked = offsets if len(offsets) <= _CHECKED_WHERE_FREE else [max(offsets)]
    damaged = set()
    for batch in checked:
        try:
            for source, text in offsets[batch].offsets:
                found = read_source_offset(source, text, initial.get(source))
                about(found).check_offset(found.offset)
        except MalformedFile as error:
            reading.fail(f"{OFFSETS}/{batch}", error)
            damaged.add(batch)
    if not damaged:
        return offsets
    return MappingProxyType({key: entry for key, entry in offsets.items() if key not in damaged})


class _Reading:
    """Collects what has been read so far, and what went wrong."""

    def __init__(self, files: Files, listing: Listing, left: int | None) -> None:
        self._files = files
        self._left = left
        self._listed = None if listing.complete else {file.path for file in listing.files}
        self._not_read: list[str] = []
        self.not_given: set[str] = set()
        self._read: dict[str, bytes | FloodmarkError] = {}
        self._failed: dict[str, str] = {
            # An empty entry is damage that the listing alone shows.
            file.path: "the file is empty: a crash or a full disk stopped its write half way"
            for file in listing.files
            if file.size == 0 and _is_log_entry(file.path)
        } | dict(listing.unreadable)

    @property
    def is_free(self) -> bool:
        """Whether nobody counts the requests."""
        return self._left is None

    def fetch(self, paths: Iterable[str], if_it_may: Iterable[str] = ()) -> None:
        """Read all of `paths`, and as many of the others as requests remain."""
        wanted = [path for path in paths if path not in self._failed]
        others = [path for path in if_it_may if path not in self._failed]
        if self._left is not None:
            self._left = max(0, self._left - len(wanted))
            others, over = others[: self._left], others[self._left :]
            self._left -= len(others)
            self._not_read += over
        self._read.update(self._files.read_many(map(RelativePath, [*wanted, *others])))

    def acting_note(self, listed: tuple[FileInfo, ...], committed: int | None) -> dict[str, Any]:
        """Return the note of the start that committed last; empty if none is there or readable."""
        from floodmark.storage.last_start import acting_note, listed_numbers

        numbers = listed_numbers(listed)
        if self._left is not None:
            numbers = numbers[len(numbers) - min(self._left, len(numbers)) :]
            self._left -= len(numbers)
        try:
            return acting_note(self._files, committed, numbers) or {}
        except CannotRead as error:
            self._failed[f"{NOTES}/starts"] = error.what
            self.not_given.add(f"{NOTES}/starts")
            return {}

    def not_read(self) -> tuple[str, ...]:
        return tuple(self._not_read)

    def data(self, path: str) -> bytes | None:
        found = self._read.get(path)
        if isinstance(found, FileGone) and self._listed is not None and path not in self._listed:
            self._not_read.append(path)  # its name was a guess
        elif isinstance(found, FileGone):
            self._failed[path] = _GONE
        elif isinstance(found, CannotRead):
            self._failed[path] = f"{found.what}: {found.why}" if found.why else found.what
            if found.may_come:
                self.not_given.add(path)
        return found if isinstance(found, bytes) else None

    @property
    def misses_some(self) -> bool:
        return any(isinstance(data, FileGone) for data in self._read.values())

    def is_gone(self, path: str) -> bool:
        return isinstance(self._read.get(path), FileGone)

    def reason(self, path: str) -> str | None:
        return self._failed.get(path)

    def parse(self, path: str, parser: Callable[[bytes], _Entry]) -> _Entry | None:
        data = self.data(path)
        if data is None:
            return None
        try:
            return parser(data)
        except MalformedFile as error:
            self.fail(path, error)
            return None

    def parse_log(
        self, log: str, batches: tuple[int, ...], parser: Callable[[bytes], _Entry]
    ) -> Mapping[int, _Entry]:
        return MappingProxyType(
            {
                batch: entry
                for batch in batches
                if (path := f"{log}/{batch}") in self._read
                and (entry := self.parse(path, parser)) is not None
            }
        )

    def fail(self, path: str, error: MalformedFile) -> None:
        self._failed[path] = error.what

    def unreadable(self) -> tuple[Unreadable, ...]:
        return tuple(Unreadable(path, reason) for path, reason in sorted(self._failed.items()))


def _is_log_entry(path: str) -> bool:
    folder, _, name = path.partition("/")
    return path == METADATA or (folder in (OFFSETS, COMMITS) and batch_id(name) is not None)
