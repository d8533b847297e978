"""Finds the rows whose keys have given values in some of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from floodmark.state.keys.keyset import hash_rows
from floodmark.state.rows.types import Struct, arrow_type
from floodmark.state.rows.unsaferow_write import encode_rows
from floodmark.state.rows.values import coerce

if TYPE_CHECKING:
    import pyarrow as pa


class PartOfKey:
    """Some fields of a key, and the values to look for."""

    def __init__(self, key_type: Struct, wanted: Mapping[str, Any]) -> None:
        import pyarrow as pa

        self._kind = Struct(tuple(one for one in key_type.fields if one.name in wanted))
        value = coerce(wanted, self._kind)
        self._aim = hash_rows(encode_rows(pa.array([value], arrow_type(self._kind)), self._kind))

    def matching(self, keys: pa.StructArray) -> list[int]:
        """Return the positions of the keys that have these values."""
        import numpy as np
        import pyarrow as pa

        columns = dict(zip((one.name for one in keys.type), keys.flatten(), strict=True))
        fields = list(arrow_type(self._kind))
        part = pa.StructArray.from_arrays([columns[one.name] for one in fields], fields=fields)
        hashes = hash_rows(encode_rows(part, self._kind))
        return [int(at) for at in np.nonzero((hashes == self._aim).all(axis=0))[0]]
