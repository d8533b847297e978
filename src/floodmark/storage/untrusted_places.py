"""Opens locations that only a file names: input folders of a log, the sink of a note.

Whoever wrote the file has chosen the name. A folder on this machine or in a bucket is read with the
user's own rights, on the user's own servers. A host is asked only where the user has named it:
asking shows it who asks, and gives it the options of `--storage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from floodmark.checkpoint.places.plain_place import plain_place
from floodmark.checkpoint.relative_path import shown
from floodmark.errors import CannotRead
from floodmark.storage.files import Files, local_path, open_files

# After `://` comes a bucket or a container; the options name the servers.
_BUCKETS = frozenset({"s3", "gs", "gcs", "abfs", "az", "adl", "oss", "memory"})


def opener(
    named: Iterable[str | None], options: Mapping[str, Any] | None, any_host: bool = False
) -> Callable[[str], Files]:
    """Return a function that opens locations; `named` are those that the user has named.

    `any_host`: the user has allowed all hosts, but the options go only to the named hosts.
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
            "Check it yourself, if it belongs to this stream.",
        )

    return opened


def _host(place: str) -> str | None:
    """Return a host such as `webhdfs://name:9870`; None for a disk and for buckets."""
    if local_path(place) is not None:
        return None
    scheme, _, rest = plain_place(place).partition("://")
    return None if scheme in _BUCKETS else f"{scheme}://{rest.partition('/')[0].lower()}"
