"""Reads the pairs of a RocksDB database, many at a time, in a separate process.

A stranger's snapshot can end the process that opens it, or keep it forever: RocksDB believes
what its checksums say. So a reader is a process of its own (rocksdb_readers starts it). Its
start counts, so next to nothing is imported here.

asked:    what (1 byte), length of the folder's name, length of the key; the name, the key
answered: ALIVE, at times again, then pieces, then an empty one; or FAILED and an error's words
a piece:  how many lengths, how many bytes; the lengths, the bytes
"""

from __future__ import annotations

import itertools
import struct
import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any, NamedTuple

ASKED = struct.Struct("<cqq")
PIECE = struct.Struct("<qq")
FAILED, ALIVE = -1, -2
RECORDS, VALUE, FIRST, TO_THE_END, CLOSE = b"r", b"v", b"f", b"e", b"c"
_AT_ONCE = 5_000
"""How many pairs to collect before joining them: so many fit into the processor's cache."""
_JOINED = 10
_FIRST_PAIRS = 1_000
_OPEN_TABLES = 64
_CACHE_BYTES = 8 << 20
"""Of tables, their indexes and filters: Spark's own options hold those of all tables at once, so
that memory would grow with the state."""


class Pairs(NamedTuple):
    """Keys and values, in turn."""

    lengths: array[int]
    parts: list[bytes]


def open_database(place: str) -> Any:
    import rocksdict

    # The database's own options name its merge operator, which lists need.
    options, families = rocksdict.Options.load_latest(place)
    tables = rocksdict.BlockBasedOptions()
    tables.set_block_cache(rocksdict.Cache(_CACHE_BYTES))
    tables.set_cache_index_and_filter_blocks(True)
    options.set_max_open_files(_OPEN_TABLES)
    for one in (options, *families.values()):
        one.set_block_based_table_factory(tables)
    return rocksdict.Rdict(
        place,
        options=options,
        column_families=families,
        access_type=rocksdict.AccessType.read_only(),
    )


def pairs_of(database: Any) -> Iterator[Pairs]:
    pairs, last, joined = iter(database.items()), None, 1
    while True:
        lengths, parts = array("i"), []
        for _ in range(joined):
            flat = list(itertools.chain.from_iterable(itertools.islice(pairs, _AT_ONCE)))
            lengths.extend(array("i", list(map(len, flat))))
            parts.append(b"".join(flat))
            last = flat[-2] if flat else last
        if not lengths:
            check_end(database, last)
            return
        yield Pairs(lengths, parts)
        joined = _JOINED  # the first pairs come early, so that a caller can start another reader


def first_pairs(database: Any, to_the_end: bool, goes_on: Callable[[], None]) -> Pairs:
    """Return the first pairs; RocksDB checks every block that it reads, up to the end on
    request.
    """
    flat = list(itertools.chain.from_iterable(itertools.islice(database.items(), _FIRST_PAIRS)))
    last = flat[-2:-1]
    if to_the_end:
        keys = iter(database.keys())
        while some := deque(itertools.islice(keys, _AT_ONCE * _JOINED), maxlen=1):
            last = list(some)
            goes_on()
    if to_the_end or len(flat) < 2 * _FIRST_PAIRS:
        check_end(database, last[0] if last else None)
    return Pairs(array("i", map(len, flat)), flat)


def check_end(database: Any, last: bytes | None) -> None:
    """Raise RocksDB's error after the last key, because pairs end at damage as at the real end.

    Only the status of an iterator at that place shows which of the two it is.
    """
    place = database.iter()
    if last is None:
        place.seek_to_first()
    else:
        place.seek(last)
        if place.valid():
            place.next()
    place.status()
    if place.valid():
        raise RuntimeError("its pairs ended before the last one")


def serve() -> None:
    """Answer requests until there are no more. One database is open at a time."""
    asked, out = sys.stdin.buffer, sys.stdout.buffer
    opened, database = "", None
    while header := asked.read(ASKED.size):
        what, length, key_length = ASKED.unpack(header)
        place, key = asked.read(length).decode(), asked.read(key_length)
        try:
            if database is not None and (place != opened or what == CLOSE):
                database.close()
                database = None
            if what == CLOSE:
                continue
            if database is None:
                opened, database = place, open_database(place)
            _send_header(out, ALIVE, 0)
            for pairs in _answer(database, what, key, partial(_send_header, out, ALIVE, 0)):
                _send_header(out, len(pairs.lengths), sum(map(len, pairs.parts)))
                out.write(pairs.lengths)
                out.writelines(pairs.parts)
            _send_header(out, 0, 0)
        except BrokenPipeError:
            return
        except Exception as error:
            said = str(error).encode(errors="replace")
            _send_header(out, FAILED, len(said))
            out.write(said)
        out.flush()


def _answer(database: Any, what: bytes, key: bytes, goes_on: Callable[[], None]) -> Iterator[Pairs]:
    if what == RECORDS:
        yield from pairs_of(database)
    elif what == VALUE:
        found: bytes | None = database.get(key)
        if found is not None:
            yield Pairs(array("i", [len(found)]), [found])
    else:
        first = first_pairs(database, what == TO_THE_END, goes_on)
        if first.lengths:
            yield first


def _send_header(out: IO[bytes], count: int, size: int) -> None:
    out.write(PIECE.pack(count, size))
    if count == ALIVE:
        out.flush()  # the caller waits for this with a time limit
