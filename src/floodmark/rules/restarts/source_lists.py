"""Finds the list of seen files that each source of files would go on with. Pure.

Spark numbers the folders below sources/ by different DataFrames, in their order: one that a
query reads twice has two places in the offsets and one folder. Code that reads it through two
DataFrames, or through one where there were two, finds the lists of other sources, or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from floodmark.checkpoint.layout import source_ids
from floodmark.checkpoint.model import Checkpoint
from floodmark.connectors.files.offset import FILE_SOURCES


def other_list(
    checkpoint: Checkpoint, kinds: Sequence[str], folders: Sequence[str]
) -> tuple[int, str] | None:
    """The first place that would not find its list, and why; None where all find theirs.

    Kinds and folders are those of the new code, by place.
    """
    places = checkpoint.sources
    if len(folders) != len(places) or len(kinds) != len(places):
        return None
    kept = source_ids(checkpoint.files)
    if not kept:  # an outline has no files
        return None
    read = [
        at
        for at, kind in enumerate(kinds)
        if kind in FILE_SOURCES and places[at].offset is not None
    ]
    for at in read:
        if folders[at] not in kept:
            return at, f"it looks for its list of seen files in sources/{folders[at]}"
    own = len(kept) == len(places)
    for at in read if own else ():
        first = folders.index(folders[at])
        if folders[at] != str(first):
            return at, f"it takes the list of seen files of source {folders[at]} for its own"
        if first != at and places[first].offset != places[at].offset:
            return at, f"it is one with source {first}, which stands elsewhere"
    return None


def seen_by_place(
    checkpoint: Checkpoint, seen: Mapping[int, str], folders: Sequence[str]
) -> dict[int, str]:
    """A file that each source has read, where several of them may be one DataFrame.

    `seen` has one for each folder below sources/.
    """
    places, kept = checkpoint.sources, source_ids(checkpoint.files)
    if len(folders) == len(places) and set(folders) == set(kept):
        ids: list[str] = list(folders)
    else:
        ids = [checkpoint.twin_of(one.id) or one.id for one in places]
    numbers = {one.id: at for at, one in enumerate(places)}
    found = {at: seen.get(numbers.get(one, -1)) for at, one in enumerate(ids)}
    return {at: path for at, path in found.items() if path is not None}
