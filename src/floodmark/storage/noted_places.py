"""Opens places that only a file names: input folders of a log, the sink of a note.

Whoever wrote the file has chosen the name. A folder on this machine or in a bucket is looked at
with the user's own rights, at the user's own servers. A host is asked only where the user has
named it: asking tells it who asks, and takes the options of `--storage` to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from floodmark.checkpoint.places.plain_place import plain_place
from floodmark.checkpoint.relative_path import shown
from floodmark.errors import CannotRead
from floodmark.storage.files import Files, local_path, open_files

# What follows `://` is a bucket or a container there; the servers are those of the options.
_BUCKETS = frozenset({"s3", "gs", "gcs", "abfs", "az", "adl", "oss", "memory"})


def opener(
    named: Iterable[str | None], options: Mapping[str, Any] | None, any_host: bool = False
) -> Callable[[str], Files]:
    """`named`: the places that the user has named. `any_host`: the user has said to ask them all,
    but the options stay with the hosts that were named.
    """
    hosts = {host for place in named if place is not None and (host := _host(place)) is not None}

    def opened(place: str) -> Files:
        host = _host(place)
        if host is None or host in hosts:
            return open_files(place, options)
        if any_host:
            return open_files(place)
        raise CannotRead(
            f"{shown(place)} is not asked: only a file in the checkpoint names that host",
            "Whoever wrote the file could send you anywhere.",
            "Look there yourself, if it is this stream's.",
        )

    return opened


def _host(place: str) -> str | None:
    """`webhdfs://name:9870`; None for a disk and for buckets."""
    if local_path(place) is not None:
        return None
    scheme, _, rest = plain_place(place).partition("://")
    return None if scheme in _BUCKETS else f"{scheme}://{rest.partition('/')[0].lower()}"
