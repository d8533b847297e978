"""Finds every checkpoint below a root, by its files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from floodmark.checkpoint import layout
from floodmark.checkpoint.layout import is_dstreams_checkpoint
from floodmark.checkpoint.places.flow import flow_place
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.views.inspection import ScanEntry, scan_entry
from floodmark.connectors.delta.offset import TABLE_LOG
from floodmark.connectors.files.file_log import SINK_LOG
from floodmark.errors import CannotRead, FloodmarkError
from floodmark.storage.files import Files, Folder, next_page
from floodmark.storage.load import load

_AT_ONCE = 16
# Files that changes have kept look like a checkpoint, but are none.
_PASSED_OVER = (".", TABLE_LOG, SINK_LOG, layout.NOTES)
PassOver = Callable[[str, str], None]
"""Gets the path of a link or an odd name, and what it is."""


def _silent(_path: str, _what: str) -> None:
    pass


def looks_like_checkpoint(level: Folder) -> bool:
    """Whether a folder has both logs, or one and another sign, or a DStreams file."""
    logs = {layout.OFFSETS, layout.COMMITS} & set(level.folders)
    beside = {layout.METADATA} & set(level.files) or {
        layout.SOURCES,
        layout.STATE,
        layout.NOTES,
    } & set(level.folders)
    return (
        len(logs) == 2
        or (bool(logs) and bool(beside))
        or any(is_dstreams_checkpoint(name) for name in level.files)
    )


def find_checkpoints(files: Files, pass_over: PassOver = _silent) -> Iterator[Files]:
    """Yield checkpoints, breadth first; a checkpoint's own folders are not searched.

    `pass_over` gets links and odd names as (path, kind). They are not followed.
    """
    waiting = deque([""])
    while waiting:
        folder = waiting.popleft()
        try:
            level = files.level(folder)
        except CannotRead:
            # The content below is unknown: reading it as a checkpoint reports what is wrong.
            yield files.below(RelativePath(folder)) if folder else files
            continue
        if looks_like_checkpoint(level) or _is_empty_flow(files, folder, level):
            yield files.below(RelativePath(folder)) if folder else files
            continue
        for name, what in level.others:
            pass_over(f"{folder}/{name}" if folder else name, what)
        waiting.extend(
            f"{folder}/{name}" if folder else name
            for name in level.folders
            if not name.startswith(_PASSED_OVER)
        )


def _is_empty_flow(files: Files, folder: str, level: Folder) -> bool:
    """Whether this is the empty folder that a full refresh of a declarative pipeline leaves."""
    has_nothing = not level.folders and not level.files
    return has_nothing and flow_place(f"{files.root}/{folder}") is not None


def scan(
    files: Files,
    look: Callable[[Files], ScanEntry] | None = None,
    pass_over: PassOver = _silent,
) -> Iterator[ScanEntry]:
    """Yield a summary of each checkpoint as it is found, also of unreadable ones.

    `look` makes a checkpoint's summary; it runs in threads where reads cost. `pass_over` gets what
    is not searched.
    """
    look = look or _glimpse
    # Loading means waiting for a network; on a local disk, Python's lock makes one
    # thread the fastest.
    workers = _AT_ONCE if files.reads_cost else 1
    with ThreadPoolExecutor(workers) as pool:
        running: set[Future[ScanEntry]] = set()
        for found in _found(files, pass_over):
            running.add(pool.submit(_entry, found, look))
            if len(running) >= 4 * workers:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        for future in running:
            yield future.result()


def _found(files: Files, pass_over: PassOver) -> Iterator[Files]:
    """Yield the checkpoints below a location, with listings if one request gave many."""
    first = next_page(files, "")
    # A flow's checkpoint may be an empty folder, which a listing of files does not show.
    if first is None or layout.FLOW_CHECKPOINTS in (*files.root.split("/"), *files.level().folders):
        yield from find_checkpoints(files, pass_over)
        return
    from floodmark.storage.listing.listed_scan import ListedFiles, list_found

    seen = set()
    for one in list_found(files, first, _PASSED_OVER):
        place = files.below(RelativePath(one.folder)) if one.folder else files
        if one.listing is not None:
            seen.add(place.root)
            yield ListedFiles(place, one.listing)
        else:
            # Some folders below it may already be known, before the name that made it a candidate.
            yield from (found for found in find_checkpoints(place) if found.root not in seen)


def _glimpse(files: Files) -> ScanEntry:
    return scan_entry(load(files))


def _entry(files: Files, look: Callable[[Files], ScanEntry]) -> ScanEntry:
    try:
        return look(files)
    except FloodmarkError as error:
        return ScanEntry(files.root, None, None, None, None, None, 0, (error.what,))
