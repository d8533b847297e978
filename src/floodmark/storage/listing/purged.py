"""Takes old batches out of a listing that a running query has removed since.

Spark removes the oldest entries of both logs while it runs. An entry that was listed and is gone
when it is read was removed so, and with it whatever is older: nothing is damaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from floodmark.checkpoint.layout import COMMITS, OFFSETS, batch_id, main_file
from floodmark.storage.files import Listing


def newest_purged(
    offset_ids: tuple[int, ...], commit_ids: tuple[int, ...], is_gone: Callable[[str], bool]
) -> int:
    """Return the newest batch that was removed after the listing; -1 if none was."""
    begin = first_kept(offset_ids, commit_ids)
    logs = ((OFFSETS, offset_ids), (COMMITS, commit_ids))
    return max(
        (
            batch
            for log, batches in logs
            for batch in batches
            if batch < begin and is_gone(f"{log}/{batch}")
        ),
        default=-1,
    )


def first_kept(offset_ids: tuple[int, ...], commit_ids: tuple[int, ...]) -> int:
    """Return the oldest batch whose entries decide a restart: Spark keeps them."""
    return min((*offset_ids[-2:], *commit_ids[-1:]), default=0)


def without_purged(listing: Listing, newest: int) -> Listing:
    """Return the listing without the entries of a batch and of those before it."""
    return replace(
        listing, files=tuple(one for one in listing.files if not is_entry_to(one.path, newest))
    )


def is_entry_to(path: str, newest: int) -> bool:
    """Whether a file is a log's entry, or its checksums, of a batch or of one before it."""
    batch = entry_batch(path)
    return batch is not None and batch <= newest


def entry_batch(path: str) -> int | None:
    """Return the batch of a log's entry or of its checksums; None for other files."""
    folder, _, name = (main_file(path) or path).partition("/")
    return batch_id(name) if folder in (OFFSETS, COMMITS) else None
