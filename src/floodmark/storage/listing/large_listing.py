"""Lists a checkpoint with more files than one listing returns, with few requests.

Names are sorted, so the logs come before the state, which is the part that can be large: a listing
that stopped in the state has every batch. An operator's description comes after its partitions.
"""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.checkpoint.layout import (
    COMMITS,
    NOTES,
    OFFSETS,
    OPERATOR_METADATA,
    SIZE_UNKNOWN,
    SOURCES,
    STATE,
    FileInfo,
    batch_id,
)
from floodmark.storage.files import Files, Listing, next_page

# No file name sorts after this one.
LAST = "\U0010ffff"


@dataclass(frozen=True)
class LargeListing:
    listing: Listing
    operators: frozenset[int]
    """The operators of the state, also those without a listed file."""
    requests: int
    """The number of requests, as far as they can be counted."""


def list_operators(files: Files, listing: Listing, most: int) -> Listing:
    """Return a stopped listing with the description of each operator, however many there are."""
    if not _reaches_the_state(listing):
        return files.list()
    found = {file.path: file for file in listing.files}
    for operator in files.level(STATE).folders:
        folder = f"{STATE}/{operator}"
        for place in (folder, f"{folder}/{OPERATOR_METADATA}"):
            if not any(path.startswith(place + "/") for path in found):
                more = files.list(place, most=most).files
                found |= {file.path: file for file in more}
    return Listing(tuple(found.values()), complete=False)


def list_frugally(files: Files, listing: Listing) -> LargeListing:
    """Return a stopped listing that has reached the state, and the operators' numbers.

    This needs one more request, and one for each further thousand entries of the logs, as the order
    of names does not show the newest entry.
    """
    requests = 1
    while not listing.complete and not _reaches_the_state(listing):
        page = next_page(files, _where_to_go_on(listing.files))
        if page is None:
            listing = files.list()
            break
        requests += 1
        listing = Listing(
            (*listing.files, *page.files), page.complete, (*listing.unreadable, *page.unreadable)
        )
    if listing.complete:
        return LargeListing(listing, frozenset(), requests)
    folders = files.level(STATE).folders
    operators = frozenset(found for name in folders if (found := batch_id(name)) is not None)
    return LargeListing(listing, operators, requests + 1)


def _where_to_go_on(files: tuple[FileInfo, ...]) -> str:
    """Return the name to continue after; files that changes have kept are skipped."""
    last = max(file.path for file in files)
    return f"{NOTES}/{LAST}" if last.startswith(f"{NOTES}/") else last


def _reaches_the_state(listing: Listing) -> bool:
    return any(file.path.startswith((f"{SOURCES}/", f"{STATE}/")) for file in listing.files)


def list_logs(files: Files) -> Listing:
    """The logs and what stands beside them, without the state."""
    top = files.level()
    if {OFFSETS, COMMITS, SOURCES} & {name for name, _ in top.others}:
        return files.list()  # a link in place of a log: told of, not followed
    if not {OFFSETS, COMMITS} & set(top.folders):
        return files.list()  # too little to be large, or not a checkpoint at all
    found = [FileInfo(name, SIZE_UNKNOWN) for name in top.files]
    odd = list(top.others)
    folders = [OFFSETS, COMMITS]
    if SOURCES in top.folders:
        folders += [f"{SOURCES}/{source}" for source in files.level(SOURCES).folders]
    for folder in folders:
        level = files.level(folder)
        found += [FileInfo(f"{folder}/{name}", SIZE_UNKNOWN) for name in level.files]
        odd += [(f"{folder}/{name}", reason) for name, reason in level.others]
    return Listing(tuple(found), complete=False, unreadable=tuple(odd))
