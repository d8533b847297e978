"""State schema files: every sample parses and renders back byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.errors import FloodmarkError, MalformedFile, UnknownVersion
from floodmark.state.rows.types import Atom, ddl, parse_struct, render_json
from floodmark.state.shapes.schema import (
    ColumnFamily,
    KeyEncoding,
    StateSchema,
    parse_schema,
    render_encoding,
    render_schema,
)

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
SAMPLES = sorted(
    [
        *CORPUS.glob("**/_metadata/schema"),
        *(p for p in CORPUS.glob("**/_stateSchema/*/*") if not p.name.startswith(".")),
    ]
)

KEY = '{"type":"struct","fields":[{"name":"name","type":"string","nullable":true,"metadata":{}}]}'
VALUE = (
    '{"type":"struct","fields":[{"name":"m","type":{"type":"map","keyType":"integer","valueType":'
    '{"type":"array","elementType":"decimal(20,4)","containsNull":false},"valueContainsNull":true}'
    ',"nullable":false,"metadata":{"a":"ü"}},{"name":"w x","type":{"type":"struct","fields":['
    '{"name":"d","type":"interval day to second","nullable":true,"metadata":{}}]},"nullable":true,'
    '"metadata":{}}]}'
)


@pytest.mark.skipif(not SAMPLES, reason="the corpus of Spark's samples is not beside the project")
@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: str(p.relative_to(CORPUS)))
def test_samples_render_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    schema = parse_schema(data)
    assert schema.families
    assert render_schema(schema) == data
    for family in schema.families:
        assert render_json(family.key) == family.key_json
        assert render_json(family.value) == family.value_json


@pytest.mark.parametrize("version", [1, 2])
def test_one_store(version: int) -> None:
    schema = StateSchema(version, (ColumnFamily("default", KEY, VALUE),))
    assert parse_schema(render_schema(schema)) == schema


@pytest.mark.parametrize("ids", [(None, None), (3, 4)])
def test_v3_in_both_layouts(ids: tuple[int | None, int | None]) -> None:
    encoding = render_encoding(KeyEncoding("RangeKeyScanStateEncoderSpec", 0, (0,)))
    family = ColumnFamily("total", KEY, VALUE, *ids, encoding, KEY)
    schema = StateSchema(3, (family, ColumnFamily("$x", KEY, KEY, *ids, encoding, "{    }")))
    found = parse_schema(render_schema(schema))
    assert found == schema
    assert found.families[0].encoding.ordering == (0,)
    assert found.families[0].user_key is not None
    assert found.families[1].user_key is None


def test_a_schema_longer_than_java_writes_at_once() -> None:
    fields = ",".join(
        f'{{"name":"column_{i}","type":"long","nullable":true,"metadata":{{}}}}'
        for i in range(2000)
    )
    text = f'{{"type":"struct","fields":[{fields}]}}'
    schema = StateSchema(2, (ColumnFamily("default", text, KEY),))
    assert len(text) > 65535
    assert parse_schema(render_schema(schema)) == schema


def test_types_read_as_a_person_writes_them() -> None:
    assert ddl(parse_struct(VALUE)) == (
        "m MAP<INT, ARRAY<DECIMAL(20,4)>> NOT NULL, `w x` STRUCT<d: INTERVAL DAY TO SECOND>"
    )
    assert render_json(parse_struct(VALUE)) == VALUE


def test_a_newer_version_is_named() -> None:
    with pytest.raises(UnknownVersion, match="v9"):
        parse_schema(b"\x00\x02v9")


def test_an_unknown_type_is_named() -> None:
    with pytest.raises(MalformedFile, match="quaternion"):
        parse_struct(KEY.replace('"string"', '"quaternion"'))


def test_text_of_any_length() -> None:
    kind = parse_struct(KEY.replace('"string"', '"varchar(10)"')).fields[0].type
    assert isinstance(kind, Atom)
    assert kind.ddl == "VARCHAR(10)"


@given(st.binary(max_size=300))
def test_random_bytes_are_refused_in_words(data: bytes) -> None:
    with pytest.raises(FloodmarkError):
        parse_schema(data)


@given(st.integers(0, 2000), st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused_in_words(at: int, byte: int) -> None:
    good = bytearray(render_schema(StateSchema(3, (ColumnFamily("c", KEY, VALUE, 0, 0),))))
    good[at % len(good)] = byte
    try:
        parse_schema(bytes(good))
    except FloodmarkError:
        return
