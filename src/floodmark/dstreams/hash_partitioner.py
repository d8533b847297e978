"""Reads `_partitioner` of a saved RDD: the number of its parts.

Spark itself counts the part files that it finds, so it does not notice if the last ones are gone.
"""

from __future__ import annotations

from floodmark.dstreams.java_objects import MAGIC, JavaObject, read_object
from floodmark.errors import FloodmarkError
from floodmark.state.files.compression import decompress

_NAMES = ("numPartitions", "partitions")
_MOST = 10_000_000


def parts_of(data: bytes) -> int | None:
    """Return the number of parts; None for a user's own partitioner or a damaged file."""
    try:
        found, _ = read_object(data if data.startswith(MAGIC) else decompress(data, 1 << 20))
    except (FloodmarkError, ModuleNotFoundError):
        return None
    if not isinstance(found, JavaObject):
        return None
    counts = [found.get(name) for name in _NAMES]
    return next((one for one in counts if type(one) is int and 0 < one <= _MOST), None)
