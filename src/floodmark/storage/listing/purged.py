"""Takes old batches out of a listing that a running query has removed since.

Spark removes the oldest entries of both logs while it runs. An entry that was listed and is gone
when it is read was removed so, and with it whatever is older: nothing is damaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from floodmark.checkpoint.layout import COMMITS, OFFSETS, FileInfo, batch_id, main_file
from floodmark.storage.files import Listing


def newest_purged(
    offset_ids: tuple[int, ...], commit_ids: tuple[int, ...], is_gone: Callable[[str], bool]
) -> int:
    """Return the newest batch that was removed after the listing; -1 if none was.

    The entries that decide a restart are no old ones: Spark keeps them.
    """
    decide = (*offset_ids[-2:], *commit_ids[-1:])
    logs = ((OFFSETS, offset_ids), (COMMITS, commit_ids))
    return max(
        (
            batch
            for log, batches in logs
            for batch in batches
            if batch < min(decide) and is_gone(f"{log}/{batch}")
        ),
        default=-1,
    )


def without_purged(listing: Listing, newest: int) -> Listing:
    """Return the listing without the entries of a batch and of those before it."""
    return replace(listing, files=tuple(one for one in listing.files if not _is_old(one, newest)))


def _is_old(file: FileInfo, newest: int) -> bool:
    folder, _, name = (main_file(file.path) or file.path).partition("/")
    batch = batch_id(name) if folder in (OFFSETS, COMMITS) else None
    return batch is not None and batch <= newest
