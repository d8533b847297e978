"""Length-prefixed records, the framing of deltas, snapshots and plain changelogs.

    { keyLen:int32 key valueLen:int32 value | keyLen:int32 key int32(-1) } int32(-1)

Only the record before a record shows where it begins. So a large buffer is walked in many
lanes at the same time. Each lane begins at a place that looks like a record. Its records
count only if the walk from the first record arrives exactly at its beginning. A wrong guess
costs time, but never gives a wrong result.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floodmark.errors import MalformedFile
from floodmark.limits import current, over_limit
from floodmark.state.rows.rowbytes import RowBytes, gather, row_bytes, starts_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from floodmark.state.rows.rowbytes import Bytes, Ints

    Mask = NDArray[np.bool_]

_INT = struct.Struct(">i")
_LANE = 16 * 1024
_WORTH_LANES = 1 << 20
_SAMPLE = 400
_LONGEST_LEARNED = 4096


@dataclass(frozen=True)
class Records:
    """Keys and values in one buffer; a removed key has an empty value."""

    keys: RowBytes
    values: RowBytes
    removed: Mask

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: Any) -> Records:
        return Records(self.keys.take(rows), self.values.take(rows), self.removed[rows])


def one_record(key: bytes, value: bytes) -> Records:
    import numpy as np

    return Records(row_bytes([key]), row_bytes([value]), np.zeros(1, bool))


@dataclass(frozen=True)
class Scan:
    records: Records
    position: int
    """The start of the first incomplete record."""
    ended: bool
    """Whether the closing -1 was found."""


def scan(data: Bytes, at: int = 0) -> Scan:
    """Return every complete record from a position on."""
    import numpy as np

    walk = _Walk(data, at)
    walk.run(_SAMPLE)
    starts = np.array(walk.starts, np.int64)
    if not walk.stopped:
        if len(data) - walk.at > _WORTH_LANES:
            starts = np.concatenate([starts, _walk_lanes(data, walk)])
        else:
            walk.run(None)
            starts = np.array(walk.starts, np.int64)
    return Scan(_records(data, starts), walk.at, walk.check_end())


def _every_int(data: Bytes) -> Any:
    """Return a big-endian int32 for every byte position."""
    import numpy as np

    return np.ndarray((max(len(data) - 3, 0),), ">i4", data, strides=(1,))


def _records(data: Bytes, starts: Ints) -> Records:
    import numpy as np

    if not len(starts):
        nothing = np.zeros(0, np.int64)
        empty = RowBytes(data, nothing, nothing)
        return Records(empty, empty, np.zeros(0, bool))
    ints = _every_int(data)
    key_lengths = ints[starts].astype(np.int64)
    value_at = starts + 4 + key_lengths
    value_lengths = ints[value_at].astype(np.int64)
    removed = value_lengths < 0
    return Records(
        RowBytes(data, starts + 4, key_lengths),
        RowBytes(data, value_at + 4, np.where(removed, 0, value_lengths)),
        removed,
    )


class _Walk:
    """Goes from record to record in plain Python."""

    def __init__(self, data: Bytes, at: int) -> None:
        self.data = memoryview(data.data)
        self.at = at
        self.starts: list[int] = []
        self.stopped = False
        """Whether it stopped: at the closing -1, at an incomplete record, or at an impossible
        one.
        """

    def run(self, most: int | None) -> None:
        data, at, end, starts = self.data, self.at, len(self.data), self.starts
        unpack = _INT.unpack_from
        count = 0
        while most is None or count < most:
            if at + 4 > end:
                break
            key = unpack(data, at)[0]
            value_at = at + 4 + key
            if key < 0 or value_at + 4 > end:
                break
            value = unpack(data, value_at)[0]
            after = value_at + 4 + (value if value > 0 else 0)
            if value < -1 or after > end:
                break
            starts.append(at)
            at = after
            count += 1
        else:
            self.at = at
            return
        self.at, self.stopped = at, True

    def check_end(self) -> bool:
        """Whether the closing -1 is here; False if more bytes are needed. Damage is an error."""
        if self.at + 4 > len(self.data):
            return False
        key = _INT.unpack_from(self.data, self.at)[0]
        if key == -1:
            return True
        if key < 0:
            raise MalformedFile(f"a key of {key} bytes at byte {self.at} of the content")
        value, value_at = 0, self.at + 4 + key
        if value_at + 4 <= len(self.data):
            value = _INT.unpack_from(self.data, value_at)[0]
            if value < -1:
                raise MalformedFile(f"a value of {value} bytes at byte {value_at} of the content")
        if key + value > current().of("row"):
            raise over_limit(f"the row at byte {self.at} of the content", key + value, "row")
        return False


def _walk_lanes(data: Bytes, walk: _Walk) -> Ints:
    """Return the starts of the records after `walk.at`; the walk then stands where they end."""
    import numpy as np

    lanes = _lane_starts(data, walk)
    steps, exits, stopped = _run_lanes(data, lanes)
    where = {int(start): lane for lane, start in enumerate(lanes)}
    kept = np.zeros(len(lanes), bool)
    walk.starts.clear()
    while not walk.stopped:
        lane = where.get(walk.at)
        if lane is None:
            # No lane begins here: walk record by record until one does.
            walk.run(1)
            continue
        kept[lane] = True
        walk.at = int(exits[lane])
        if stopped[lane]:
            walk.run(None)
    starts = _in_order(steps, kept)
    if walk.starts:
        starts = np.concatenate([np.array(walk.starts, np.int64), starts])
        starts.sort()
    return starts


def _in_order(steps: list[tuple[Ints, Ints]], kept: Mask) -> Ints:
    """Return the starts of the counted lanes in order, without sorting."""
    import numpy as np

    counts = np.zeros(len(kept), np.int64)
    for lanes, _ in steps:
        counts[lanes] += 1
    counts[~kept] = 0
    firsts = np.cumsum(counts) - counts
    found = np.empty(int(counts.sum()), np.int64)
    for step, (lanes, starts) in enumerate(steps):
        counted = kept[lanes]
        # A lane steps every time until it ends.
        found[firsts[lanes[counted]] + step] = starts[counted]
    return found


def _lane_starts(data: Bytes, walk: _Walk) -> Ints:
    """Return places, one in each stretch, that look like the records found so far."""
    import numpy as np

    ints = _every_int(data)
    known = np.array(walk.starts, np.int64)
    key_lengths = ints[known].astype(np.int64)
    value_lengths = np.maximum(ints[known + 4 + key_lengths].astype(np.int64), 0)
    window = int(min(3 * (8 + key_lengths + value_lengths).max(), _LANE))
    likely_key, likely_value = _likely(key_lengths), _likely(value_lengths)
    edges = np.arange(walk.at + _LANE, len(data) - window - 8, _LANE, dtype=np.int64)
    places = edges[:, None] + np.arange(window)
    keys = ints[places].astype(np.int64)
    fits = (keys >= 0) & (keys < _LONGEST_LEARNED) & (places + keys + 8 <= len(data))
    keys = np.where(fits, keys, 0)
    fits &= likely_key[keys]
    rows, columns = np.nonzero(fits)
    candidates = places[rows, columns]
    values = ints[candidates + 4 + keys[rows, columns]].astype(np.int64)
    good = (values >= 0) & (values < _LONGEST_LEARNED)
    good &= likely_value[np.where(good, values, 0)]
    rows, candidates = rows[good], candidates[good]
    _, first = np.unique(rows, return_index=True)
    return np.concatenate([[walk.at], candidates[first]]).astype(np.int64)


def _likely(lengths: Ints) -> Mask:
    import numpy as np

    table = np.zeros(_LONGEST_LEARNED, bool)
    table[lengths[lengths < _LONGEST_LEARNED]] = True
    return table


def _run_lanes(data: Bytes, lanes: Ints) -> tuple[list[tuple[Ints, Ints]], Ints, Mask]:
    """Walk every lane up to the beginning of the next one.

    Returns, for each step, the lanes that stepped and their positions; then where each lane
    stopped, and whether it found something that is not a complete record.
    """
    import numpy as np

    ints, end = _every_int(data), len(data)
    limits = np.append(lanes[1:], end)
    exits, stopped = lanes.copy(), np.zeros(len(lanes), bool)
    numbers, at = np.arange(len(lanes)), lanes.copy()
    steps: list[tuple[Ints, Ints]] = []
    while len(numbers):
        whole = at + 8 <= end
        key = np.where(whole, ints[np.minimum(at, len(ints) - 1)], -1).astype(np.int64)
        value_at = at + 4 + key
        whole &= (key >= 0) & (value_at + 4 <= end)
        value = np.where(whole, ints[np.where(whole, value_at, 0)], -2).astype(np.int64)
        after = value_at + 4 + np.maximum(value, 0)
        whole &= (value >= -1) & (after <= end)
        if not whole.all():
            stopped[numbers[~whole]] = True
            exits[numbers[~whole]] = at[~whole]
            numbers, at, after = numbers[whole], at[whole], after[whole]
        steps.append((numbers, at))
        inside = after < limits[numbers]
        if not inside.all():
            exits[numbers[~inside]] = after[~inside]
            numbers, after = numbers[inside], after[inside]
        at = after
    return steps, exits, stopped


def render_records(keys: list[bytes], values: list[bytes | None]) -> bytes:
    """Return the records and the closing -1; the value None removes its key."""
    parts = []
    for key, value in zip(keys, values, strict=True):
        parts += [_INT.pack(len(key)), key]
        parts += [_INT.pack(-1)] if value is None else [_INT.pack(len(value)), value]
    return b"".join([*parts, _INT.pack(-1)])


CLOSING = _INT.pack(-1)
"""The bytes that end a file of records."""


def render_rows(keys: RowBytes, values: RowBytes, closing: bool = True) -> bytes:
    """Return the records of many rows and the closing -1, without a Python object for each row."""
    import numpy as np

    if len(keys) and int(((keys.lengths | values.lengths) & 3).max()):
        whole = render_records(keys.to_list(), list(values.to_list()))
        return whole if closing else whole[: -len(CLOSING)]
    starts = starts_of(8 + keys.lengths + values.lengths)
    total = int((8 + keys.lengths + values.lengths).sum())
    words = np.empty(total // 4 + 1, "<u4")
    words[-1] = 0xFFFFFFFF
    _put_words(words, starts, keys)
    _put_words(words, starts + 4 + keys.lengths, values)
    return words.tobytes() if closing else words[:-1].tobytes()


def _put_words(words: NDArray[np.uint32], places: Ints, rows: RowBytes) -> None:
    """Write a length and a row at every place; everything is in whole 4-byte words."""
    import numpy as np

    words[places // 4] = rows.lengths.astype(">u4").view("<u4")
    counts = rows.lengths // 4
    steps = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(starts_of(counts), counts)
    source = np.repeat(rows.starts, counts) + steps * 4
    words[np.repeat(places // 4 + 1, counts) + steps] = gather(rows.data, source, "<u4")
