"""Holds many byte strings in one buffer: a start and a length each, in numpy arrays.

All code that reads state uses it, so that a million rows cost a few array operations and not a
million Python objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floodmark.errors import MalformedFile

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Bytes = NDArray[np.uint8]


_SMALL = 2**31 - 1


@dataclass(frozen=True)
class RowBytes:
    data: Bytes
    starts: Ints
    lengths: Ints

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, at: int) -> bytes:
        start = int(self.starts[at])
        return self.data[start : start + int(self.lengths[at])].tobytes()

    def take(self, rows: Any) -> RowBytes:
        """Return the rows of an index array, a mask or a slice; the buffer is shared."""
        return RowBytes(self.data, self.starts[rows], self.lengths[rows])

    def skip(self, size: int) -> RowBytes:
        """Return every row without its first bytes."""
        self._require(size)
        return RowBytes(self.data, self.starts + size, self.lengths - size)

    def trim(self, size: int) -> RowBytes:
        """Return every row without its last bytes."""
        self._require(size)
        return RowBytes(self.data, self.starts, self.lengths - size)

    def _require(self, size: int) -> None:
        if len(self) and int(self.lengths.min()) < size:
            raise MalformedFile(f"a row of the state has less than {size} bytes")

    def to_list(self) -> list[bytes]:
        whole = self.data.tobytes() if len(self) > 64 else self.data
        ends = (self.starts + self.lengths).tolist()
        return [bytes(whole[a:b]) for a, b in zip(self.starts.tolist(), ends, strict=True)]

    @property
    def size(self) -> int:
        return int(self.lengths.sum())


def row_bytes(rows: Iterable[bytes]) -> RowBytes:
    import numpy as np

    rows = list(rows)
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return RowBytes(as_bytes(b"".join(rows)), starts_of(lengths), lengths)


def as_bytes(data: bytes | bytearray | memoryview) -> Bytes:
    import numpy as np

    return np.frombuffer(data, np.uint8)


def starts_of(lengths: Ints) -> Ints:
    import numpy as np

    starts = np.zeros(len(lengths), np.int64)
    np.cumsum(lengths[:-1], out=starts[1:])
    return starts


def concatenate(parts: list[RowBytes]) -> RowBytes:
    """Return one buffer with the rows of all parts, in order."""
    import numpy as np

    if len(parts) == 1:
        return parts[0]
    if not parts:
        return RowBytes(np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))
    shifts = np.cumsum([0] + [len(part.data) for part in parts[:-1]])
    return RowBytes(
        np.concatenate([part.data for part in parts]),
        np.concatenate([part.starts + shift for part, shift in zip(parts, shifts, strict=True)]),
        np.concatenate([part.lengths for part in parts]),
    )


def joined(parts: Sequence[RowBytes | bytes]) -> RowBytes:
    """Join the parts of each row; bytes are the same for every row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = [
        pa.scalar(part, pa.binary()) if isinstance(part, bytes) else binary_array(part)
        for part in parts
    ]
    return from_binary(pc.binary_join_element_wise(*columns, pa.scalar(b"", pa.binary())))


def from_binary(column: pa.Array) -> RowBytes:
    """Return an Arrow column of bytes without nulls, as rows over its own buffer."""
    import numpy as np

    _, offsets, data = column.buffers()
    every = np.frombuffer(offsets or b"\0\0\0\0", np.int32)
    bounds = every[column.offset : column.offset + len(column) + 1].astype(np.int64)
    return RowBytes(np.frombuffer(data or b"", np.uint8), bounds[:-1], bounds[1:] - bounds[:-1])


def gather(data: Bytes, positions: Ints, dtype: str) -> NDArray[Any]:
    """Return the numbers of a type at any byte positions, aligned or not."""
    import numpy as np

    size = np.dtype(dtype).itemsize
    if not len(positions):
        return np.zeros(0, dtype)
    if int(positions.min()) < 0 or int(positions.max()) + size > len(data):
        raise MalformedFile("a row of the state points outside its file")
    if size == 1:
        return data.view(dtype)[positions]
    every = np.ndarray((len(data) - size + 1,), dtype, data, strides=(1,))
    return np.asarray(every[positions])


def binary_array(rows: RowBytes) -> pa.Array:
    """Return the rows as an Arrow column of bytes, copied by Arrow and not by numpy.

    The buffer already is a column of rows and of the gaps between them, in turn. Every other
    element is a row.
    """
    import numpy as np
    import pyarrow as pa

    count = len(rows)
    starts, ends = rows.starts, rows.starts + rows.lengths
    if not count:
        return pa.array([], pa.binary())
    if int(starts.min()) < 0 or int(ends.max()) > len(rows.data) or int(rows.lengths.min()) < 0:
        raise MalformedFile("a row of the state points outside its file")
    places = np.arange(0, 2 * count, 2, dtype=np.int64)
    if bool((starts[1:] < ends[:-1]).any()):
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        places[order] = places.copy()
        if bool((starts[1:] < ends[:-1]).any()):
            return pa.array(rows.to_list(), pa.binary())
    offsets = np.empty(2 * count + 1, np.int64)
    offsets[0:-1:2], offsets[1::2], offsets[-1] = starts, ends, ends[-1]
    small = len(rows.data) < _SMALL
    column = pa.Array.from_buffers(
        pa.binary() if small else pa.large_binary(),
        2 * count,
        [
            None,
            pa.py_buffer(offsets.astype(np.int32) if small else offsets),
            pa.py_buffer(rows.data),
        ],
        0,
    )
    found = column.take(pa.array(places))
    try:
        return found if small else found.cast(pa.binary())
    except pa.ArrowInvalid:
        raise MalformedFile("more than 2 GB of strings in one piece of the state") from None
