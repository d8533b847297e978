"""Finds input that a stream would have to read again but cannot, because files are gone.

Spark ignores missing files and reports nothing; the state then lacks their records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from urllib.parse import quote

from floodmark.changes.carry.origin import Origin
from floodmark.changes.carry.resume_point import ResumePoint, UpgradeOptions
from floodmark.changes.sources.out_of_reach import OUT_OF_REACH, Reach, require_reach
from floodmark.checkpoint.layout import SOURCES
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.offsets import OffsetEntry
from floodmark.connectors.files.file_log import SourceFile, files_between
from floodmark.connectors.files.live import read_source_log
from floodmark.connectors.files.offset import parse_log_offset
from floodmark.connectors.registry import about, kinds, read_source_offset
from floodmark.connectors.source import SourceOffset, parse_offset_text
from floodmark.errors import FloodmarkError, WouldLose
from floodmark.storage.files import Files

Opened = Callable[[str], Files]
_NAMED = 3
THEN = "Spark then goes on without them, and reports nothing."


def require_input(
    origin: Origin, request: UpgradeOptions, course: ResumePoint, opened: Opened
) -> tuple[str, ...]:
    """Check that input files of batches that are planned again are there; return notes."""
    if request.without_state:
        _require_no_own_files(origin.checkpoint, request.accept)
    if course.after == course.highest or course.in_flight is not None:
        return ()
    begins = None if course.after is None else origin.checkpoint.offsets[course.after]
    asked = request.kafka is not None
    gone = gone_input(origin.files, origin.checkpoint, begins, opened, asked)
    return require_reach(gone, request.accept)


def gone_input(
    files: Files,
    checkpoint: Checkpoint,
    begins: OffsetEntry | None,
    opened: Opened,
    kafka_asked: bool = False,
    ends: OffsetEntry | None = None,
) -> Reach:
    """Return the seen files after these offsets that are gone; None: from the beginning.

    `ends` is where reading stops; None: at the last file that was seen. Sources without a list of
    files are not asked here, and the result says so.
    """
    doubts = list(_not_read_again(checkpoint))
    lost: list[str] = []
    notes: list[str] = []
    for source, after in _file_sources(checkpoint, begins).items():
        seen = read_source_log(files, checkpoint, source)
        last = _log_position(ends, source)
        if last is None:
            last = max((file.batch_id for file in seen), default=-1)
        again = files_between(seen, after, last)
        gone, unseen = _gone(again, opened)
        if gone:
            lost.append(_words(source, gone, len(again)))
        if unseen:
            notes.append(f"Source {source}: {unseen} cannot be listed from here; look yourself.")
    notes += _not_asked(checkpoint, kafka_asked)
    return Reach((*doubts, *lost), tuple(notes), then=THEN, certain=bool(lost))


def _not_read_again(checkpoint: Checkpoint) -> Iterator[str]:
    """Yield sources that may not read again, as their own files or servers know what was read."""
    for source in checkpoint.sources:
        if about(source).lists_files:
            continue
        if about(source).going_back is not None:
            yield f"source {source.id} ({source.kind}) {about(source).going_back}"
        own = _own_file(checkpoint, source)
        if own is not None:
            yield (
                f"source {source.id} ({source.kind}) keeps files of its own, such as {own}: they "
                "do not go back, so it may not read again what they list"
            )


def _require_no_own_files(checkpoint: Checkpoint, accept: Collection[str]) -> None:
    """Refuse sources with files of their own, which a stream from batch 0 leaves behind."""
    if OUT_OF_REACH in accept:
        return
    for source in checkpoint.sources:
        own = None if about(source).lists_files else _own_file(checkpoint, source)
        if own is not None:
            raise WouldLose(
                f"--without-state: source {source.id} ({source.kind}) keeps files of its own, such "
                f"as {own}",
                "These files say what it has read, but they stay behind: it would begin as the "
                "code says, and "
                "read all of it again, or leave out unread input.",
                f"Keep the state, or accept it by name: --accept {OUT_OF_REACH}.",
            )


def _own_file(checkpoint: Checkpoint, source: SourceOffset) -> str | None:
    folder = f"{SOURCES}/{source.id}/"
    return min((one.path for one in checkpoint.files if _is_own(one.path, folder)), default=None)


def _is_own(path: str, folder: str) -> bool:
    """Whether a file is the source's own, and not a start position, schema or shard of any kind."""
    if not path.startswith(folder):
        return False
    rest = path[len(folder) :]
    if rest.startswith(".") or "/." in rest:
        return False
    return not any(fnmatchcase(rest, one) for kind in kinds() for one in kind.start_files)


def _not_asked(checkpoint: Checkpoint, kafka_asked: bool) -> Iterator[str]:
    for source in checkpoint.sources:
        kind = about(source)
        if kind.lists_files or (kind.has_topics and kafka_asked):
            continue
        asks = f"; after the change `floodmark doctor CP --sources {kind.asked_with}` asks it"
        yield (
            f"Source {source.id} ({source.kind}) was not asked whether it still has what is "
            f"read again{asks if kind.asked_with else ''}."
        )


def _file_sources(checkpoint: Checkpoint, begins: OffsetEntry | None) -> Mapping[str, int | None]:
    found: dict[str, int | None] = {}
    for source in checkpoint.sources:
        if not about(source).lists_files or checkpoint.twin_of(source.id) is not None:
            continue
        text = begins.of(source.id) if begins is not None else None
        if text is None or about(read_source_offset(source.id, text)).lists_files:
            found[source.id] = _log_position(begins, source.id)
    return found


def _log_position(entry: OffsetEntry | None, source: str) -> int | None:
    """Return the entry of its own log at which a file source stands."""
    text = entry.of(source) if entry is not None else None
    return None if text is None else parse_log_offset(parse_offset_text(text))


def _gone(files: Iterable[SourceFile], opened: Opened) -> tuple[list[str], str]:
    """Return the files that are gone, and a folder that cannot be listed."""
    by_folder: dict[str, list[str]] = {}
    for file in files:
        folder, _, name = file.readable_path.rpartition("/")
        by_folder.setdefault(folder, []).append(name)
    gone: list[str] = []
    for folder, names in by_folder.items():
        try:
            # A readable path is not encoded; a URL of a local file is.
            place = quote(folder, safe="/:") if folder.startswith("file:") else folder
            there = set(opened(place).level().files)
        except FloodmarkError:
            return gone, folder
        gone += [f"{folder}/{name}" for name in names if name not in there]
    return gone, ""


def _words(source: str, gone: list[str], read: int) -> str:
    named = ", ".join(gone[:_NAMED]) + (", …" if len(gone) > _NAMED else "")
    files = "file" if read == 1 else "files"
    are = "is" if len(gone) == 1 else "are"
    return f"source {source}: {len(gone)} of {read} input {files} to read again {are} gone: {named}"
