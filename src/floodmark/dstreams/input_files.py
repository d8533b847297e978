"""Finds which files a file stream had read after a batch, and which it had not. Pure.

A file stream remembers the files of its last batches by name. Older files count as read, by their
time alone. Seen from the state of an earlier batch, the files of later batches are unread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from floodmark.checkpoint.dstreams.folder import DStream


@dataclass(frozen=True)
class InputFiles:
    """The files of one folder, as of the end of a batch."""

    directory: str
    unread: tuple[str, ...]
    """The unread files, oldest first."""
    read: tuple[str, ...]
    gone: tuple[str, ...]
    """Files of later batches that no longer exist."""
    ignores_before_ms: int
    """Files of this age or older are read, or are never read."""
    newer_read: tuple[str, ...]
    """Read files that are newer than `ignores_before_ms`."""
    times: tuple[tuple[str, int], ...] = ()
    """(file, time of its last change)"""
    passed_over: tuple[str, ...] = ()
    """Files that count as read because they are older than the stream itself."""


def input_files(
    stream: DStream, as_of_ms: int, last_ms: int, listed: Iterable[tuple[str, int]]
) -> InputFiles:
    """Return the files of a folder after a batch.

    `listed`: each file of the folder with the time of its change, in milliseconds. `last_ms` is the
    last batch that the stream has chosen files for.
    """
    before = {name for time, names in stream.files.items() if time <= as_of_ms for name in names}
    after = {name for time, names in stream.files.items() if time > as_of_ms for name in names}
    remembered = last_ms - (stream.remembers_ms or 0)
    begins = stream.ignores_before_ms or 0
    oldest = max(begins, remembered)
    times = dict(listed)

    def is_unread(name: str) -> bool:
        return name in after or (times[name] > oldest and name not in before)

    unread = sorted((name for name in times if is_unread(name)), key=lambda name: times[name])
    read = sorted(times.keys() - set(unread))
    threshold = min([oldest, *(times[name] - 1 for name in unread[:1])])
    return InputFiles(
        stream.directory or "",
        tuple(unread),
        tuple(read),
        tuple(sorted(after - times.keys())),
        threshold,
        tuple(name for name in read if times[name] > threshold),
        tuple(sorted(times.items())),
        tuple(name for name in read if times[name] <= begins and name not in before),
    )
