"""Reads and writes state schema files, which describe the keys and values of a store.

v1 and v2 hold one store's key and value. v3 holds every column family of an operator, in two
layouts that both call themselves v3: released Sparks write schema ids, the pre-releases of 4.0 did
not.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.text import parse_json_object, parse_version, shorten
from floodmark.errors import MalformedFile
from floodmark.state.files.javadata import MAX_UTF, DataReader, encode_utf
from floodmark.state.rows.types import Atom, Struct, parse_struct

if TYPE_CHECKING:
    from floodmark.checkpoint.outline import FamilyOutline

NEWEST_VERSION = 3
DEFAULT_FAMILY = "default"
NO_USER_KEY = "{    }"
_MOST_FAMILIES = 10_000


@dataclass(frozen=True)
class KeyEncoding:
    """How RocksDB's keys are laid out, so that they can be scanned by prefix or by range."""

    kind: str = "NoPrefixKeyStateEncoderSpec"
    prefix_columns: int = 0
    ordering: tuple[int, ...] = ()

    @property
    def is_plain(self) -> bool:
        return self.kind == "NoPrefixKeyStateEncoderSpec"


PLAIN = KeyEncoding()


@dataclass(frozen=True)
class ColumnFamily:
    name: str
    key_json: str
    value_json: str
    key_id: int | None = None
    value_id: int | None = None
    encoding_json: str | None = None
    user_key_json: str | None = None
    """The schema of a map state's own keys."""

    @property
    def key(self) -> Struct:
        return parse_struct(self.key_json)

    @property
    def value(self) -> Struct:
        return parse_struct(self.value_json)

    @property
    def user_key(self) -> Struct | None:
        if self.user_key_json is None or self.user_key_json.replace(" ", "") == "{}":
            return None
        return parse_struct(self.user_key_json)

    @property
    def encoding(self) -> KeyEncoding:
        return parse_encoding(self.encoding_json, self.key) if self.encoding_json else PLAIN


def is_keyed(key: Struct | None) -> bool:
    """Whether a key has columns. A limit and a total over everything have none, and one task."""
    return key is not None and any(
        not (isinstance(field.type, Atom) and field.type.name == "void") for field in key.fields
    )


@dataclass(frozen=True)
class StateSchema:
    version: int
    families: tuple[ColumnFamily, ...]

    @property
    def has_keys(self) -> bool:
        return any(is_keyed(family.key) for family in self.families)

    @property
    def outline(self) -> tuple[FamilyOutline, ...]:
        """The schemas without what only this checkpoint's files need."""
        from floodmark.checkpoint.outline import FamilyOutline  # most verbs compare no schemas

        return tuple(
            FamilyOutline(one.name, one.key_json, one.value_json, one.encoding_json)
            for one in self.families
        )

    def family(self, name: str) -> ColumnFamily | None:
        return next((family for family in self.families if family.name == name), None)


def parse_schema(data: bytes) -> StateSchema:
    reader = DataReader(data)
    if not data:
        raise MalformedFile("the state schema file is empty", "The file's write was interrupted.")
    version = parse_version(reader.utf(), NEWEST_VERSION)
    if version == 3:
        return StateSchema(3, _parse_v3(data, reader.position))
    read = reader.utf if version == 1 else lambda: _chunked(reader)
    family = ColumnFamily(DEFAULT_FAMILY, read(), read())
    _check_end(reader)
    _check_schemas(family)
    return StateSchema(version, (family,))


def _parse_v3(data: bytes, start: int) -> tuple[ColumnFamily, ...]:
    try:
        return _families(DataReader(data, start), with_ids=True)
    except MalformedFile as error:
        try:
            return _families(DataReader(data, start), with_ids=False)
        except MalformedFile:
            raise error from None


def _families(reader: DataReader, with_ids: bool) -> tuple[ColumnFamily, ...]:
    count = reader.int32()
    if not 0 <= count <= _MOST_FAMILIES:
        raise MalformedFile(f"the schema file claims {count} column families")
    families = tuple(_family(reader, with_ids) for _ in range(count))
    _check_end(reader)
    return families


def _family(reader: DataReader, with_ids: bool) -> ColumnFamily:
    name = reader.utf()
    key_id = reader.int16() if with_ids else None
    key = _chunked(reader)
    value_id = reader.int16() if with_ids else None
    value = _chunked(reader)
    family = ColumnFamily(name, key, value, key_id, value_id, _chunked(reader), _chunked(reader))
    _check_schemas(family)
    return family


def _check_schemas(family: ColumnFamily) -> None:
    # Parsing them shows whether the layout is right, and finds damage early.
    _ = family.key, family.value, family.encoding, family.user_key


def _check_end(reader: DataReader) -> None:
    if not reader.at_end:
        raise MalformedFile(
            f"the schema file has bytes after its end, at byte {reader.position} of "
            f"{len(reader.data)}"
        )


def _chunked(reader: DataReader) -> str:
    count = reader.int32()
    if not 0 <= count <= len(reader.data):
        raise MalformedFile(f"a schema claims {count} pieces")
    return "".join(reader.utf() for _ in range(count))


def render_schema(schema: StateSchema) -> bytes:
    parts = [encode_utf(f"v{schema.version}")]
    if schema.version == 3:
        parts.append(struct.pack(">i", len(schema.families)))
        parts.extend(_render_family(family) for family in schema.families)
        return b"".join(parts)
    (family,) = schema.families
    write = encode_utf if schema.version == 1 else _render_chunked
    return b"".join([*parts, write(family.key_json), write(family.value_json)])


def _render_family(family: ColumnFamily) -> bytes:
    def numbered(number: int | None) -> bytes:
        return b"" if number is None else struct.pack(">h", number)

    return b"".join(
        [
            encode_utf(family.name),
            numbered(family.key_id),
            _render_chunked(family.key_json),
            numbered(family.value_id),
            _render_chunked(family.value_json),
            _render_chunked(family.encoding_json or render_encoding(PLAIN)),
            _render_chunked(family.user_key_json or NO_USER_KEY),
        ]
    )


def _render_chunked(text: str) -> bytes:
    # Java counts characters in UTF-16 units, so chunks are counted in them, too.
    units = text.encode("utf-16-be", "surrogatepass")
    size = MAX_UTF * 2
    chunks = [units[at : at + size] for at in range(0, len(units), size)] or [b""]
    pieces = [encode_utf(chunk.decode("utf-16-be", "surrogatepass")) for chunk in chunks]
    return struct.pack(">i", len(pieces)) + b"".join(pieces)


def parse_encoding(text: str, key: Struct) -> KeyEncoding:
    fields = parse_json_object(text, "the key encoding")
    kind = fields.get("keyStateEncoderType")
    size = len(key.fields)
    if kind == "PrefixKeyScanStateEncoderSpec":
        return KeyEncoding(kind, _count(fields.get("numColsPrefixKey"), 1, size))
    if kind == "RangeKeyScanStateEncoderSpec":
        ordinals = fields.get("orderingOrdinals")
        if (
            not isinstance(ordinals, list)
            or not ordinals
            or len(set(map(str, ordinals))) != len(ordinals)
        ):
            raise MalformedFile(f"orderingOrdinals is {shorten(repr(ordinals))}")
        return KeyEncoding(kind, 0, tuple(_count(item, 0, size - 1) for item in ordinals))
    if kind in (
        "NoPrefixKeyStateEncoderSpec",
        "TimestampAsPrefixKeyStateEncoderSpec",
        "TimestampAsPostfixKeyStateEncoderSpec",
    ):
        return KeyEncoding(kind)
    raise MalformedFile(f"unknown key encoding {shorten(repr(kind))}")


def render_encoding(encoding: KeyEncoding) -> str:
    fields: dict[str, Any] = {"keyStateEncoderType": encoding.kind}
    if encoding.prefix_columns:
        fields["numColsPrefixKey"] = encoding.prefix_columns
    if encoding.ordering:
        fields["orderingOrdinals"] = list(encoding.ordering)
    return json.dumps(fields, separators=(",", ":"))


def _count(value: Any, least: int, most: int) -> int:
    # Spark's JSON library writes these as BigInt, and some versions quote them.
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if type(value) is not int or not least <= value <= most:
        raise MalformedFile(f"a key encoding names column {shorten(repr(value))}")
    return value
