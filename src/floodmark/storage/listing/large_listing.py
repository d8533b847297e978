"""Lists a checkpoint of more files than one listing gives, with few requests.

Names sort, so the logs come before the state, which is the part that can be large: a listing that
was stopped in the state holds every batch. What tells of an operator lies behind its partitions.
"""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.checkpoint.layout import NOTES, SOURCES, STATE, FileInfo, batch_id
from floodmark.storage.files import Files, Listing, next_page

# No name of a file sorts after it.
LAST = "\U0010ffff"


@dataclass(frozen=True)
class LargeListing:
    listing: Listing
    operators: frozenset[int]
    """Those of the state, also where none of their files was listed."""
    requests: int
    """As far as they can be counted."""


def list_operators(files: Files, listing: Listing, most: int) -> Listing:
    """A stopped listing with what tells of each operator, however many there are."""
    if not _reaches_the_state(listing):
        return files.list()
    found = {file.path: file for file in listing.files}
    for operator in files.level(STATE).folders:
        folder = f"{STATE}/{operator}"
        for place in (folder, f"{folder}/_metadata"):
            if not any(path.startswith(place + "/") for path in found):
                more = files.list(place, most=most).files
                found |= {file.path: file for file in more}
    return Listing(tuple(found.values()), complete=False)


def list_frugally(files: Files, listing: Listing) -> LargeListing:
    """A stopped listing that has reached the state, and the numbers of the operators.

    One request more, and one for each further thousand entries of the logs: which of them is the
    newest, the order of names does not tell.
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
    """Behind the last name; what changes have kept is passed over, it is no part of the stream."""
    last = max(file.path for file in files)
    return f"{NOTES}/{LAST}" if last.startswith(f"{NOTES}/") else last


def _reaches_the_state(listing: Listing) -> bool:
    return any(file.path.startswith((f"{SOURCES}/", f"{STATE}/")) for file in listing.files)
