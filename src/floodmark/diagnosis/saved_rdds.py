"""Reads the saved RDDs of DStreams that a restart needs in full, for `doctor --read-data`.

A part is a stream of Java objects, with pickled batches in them. Everything is decoded and nothing
is run: a pickle of more than plain data is followed operation by operation to its end.
"""

from __future__ import annotations

import pickletools  # nosec B403: it walks through a pickle, and runs nothing of it
from collections import deque
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.layout import side_file
from floodmark.dstreams.plain_pickle import NotPlain, plain_loads
from floodmark.errors import CannotRead, FloodmarkError, MalformedFile, OverLimit
from floodmark.progress import counted

if TYPE_CHECKING:
    from floodmark.diagnosis.facts import Gathering


def read_saved_rdds(found: Gathering) -> None:
    inside = found.checkpoint.dstreams
    assert inside is not None
    paths = [
        f"{rdd.path}/part-{at:05d}"
        for rdd in inside.rdds
        if rdd.batch_time_ms is not None
        for at in range(rdd.partitions)
    ]
    for path in counted(paths, "parts of saved state"):
        if path not in found.sizes:
            continue  # a part between others is missing: a rule finds that by the names
        sides = [side] if (side := side_file(path)) in found.sizes else []
        contents = found.files.read_many([path, *sides])
        data = contents[path]
        if isinstance(data, FloodmarkError):
            found.fail(path, data)
        else:
            sums = contents.get(sides[0]) if sides else None
            if isinstance(sums, bytes):
                found.check_side(path, data, sums)
            _look(found, path, data, inside.has_kryo_records)
        for one in (path, *sides):
            found.files.contents.pop(one, None)


def _look(found: Gathering, path: str, data: bytes, is_kryo: bool) -> None:
    from floodmark.dstreams.state_rows import state_pairs
    from floodmark.state.files.compression import decompress

    try:
        if is_kryo:
            decompress(data)  # only Spark can read the content
        else:
            deque(state_pairs(data, _followed), maxlen=0)
    except OverLimit:
        raise  # it is not known whether the file is sound
    except MalformedFile as error:
        found.fail(path, error)
    except CannotRead:
        return  # other records than state: the application itself saves this RDD


def _followed(data: bytes) -> Any:
    """Return the batch if it is plain; an empty list if it is not plain and not damaged."""
    try:
        return plain_loads(data)
    except NotPlain:
        pass
    try:
        deque(pickletools.genops(data), maxlen=0)
    except ValueError as error:
        raise MalformedFile("a pickled batch of the state is damaged", str(error)) from None
    return []
