from __future__ import annotations

import pytest

from floodmark.checkpoint.metadata import (
    StateStoreInfo,
    new_metadata,
    parse_metadata,
    parse_operator_metadata,
    render_metadata,
)
from floodmark.errors import MalformedFile, UnknownVersion

ID = "dddc5e7f-1e71-454c-8362-de184444fb5a"


@pytest.mark.parametrize(
    "data",
    [
        f'{{"id":"{ID}"}}'.encode(),
        f'{{\n  "id" : "{ID}"\n}}\n'.encode(),
        f'{{"id":"{ID}","later":true}}'.encode(),
    ],
)
def test_the_query_id(data: bytes) -> None:
    metadata = parse_metadata(data)
    assert metadata.id == ID
    assert render_metadata(metadata) == data


def test_a_new_one() -> None:
    assert render_metadata(new_metadata(ID)) == f'{{"id":"{ID}"}}'.encode()
    assert parse_metadata(render_metadata(new_metadata(ID))) == new_metadata(ID)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b'{"id":"dddc', "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "no query id"),
        (b'{"id":7}', "no query id"),
        (b'{"id":""}', "no query id"),
        (b"\xff{}", "not UTF-8"),
    ],
)
def test_damage_of_a_query_has_its_own_words(data: bytes, words: str) -> None:
    with pytest.raises(MalformedFile, match=words):
        parse_metadata(data)


V1 = (
    b'v1\n{"operatorInfo":{"operatorId":0,"operatorName":"stateStoreSave"},"stateStoreInfo":'
    b'[{"storeName":"default","numColsPrefixKey":0,"numPartitions":4}]}'
)
V2 = (
    b'v2\n{"operatorInfo":{"operatorId":1,"operatorName":"transformWithStateExec"},'
    b'"stateStoreInfo":[{"storeName":"default","numColsPrefixKey":1,"numPartitions":5,'
    b'"stateSchemaFilePaths":["file:/ck/state/1/_stateSchema/default/0_a","file:/ck/b"]}],'
    b'"operatorPropertiesJson":"{\\"timeMode\\":\\"NoTime\\"}"}'
)
PRE_RELEASE = V2.replace(
    b'"stateSchemaFilePaths":["file:/ck/state/1/_stateSchema/default/0_a","file:/ck/b"]',
    b'"stateSchemaFilePath":"file:/ck/state/1/_stateSchema/default/0_a"',
)


def test_v1() -> None:
    found = parse_operator_metadata(V1)
    assert (found.version, found.operator_name) == (1, "stateStoreSave")
    assert found.stores == (StateStoreInfo("default", 0, 4),)
    assert found.properties_json == ""


def test_v2() -> None:
    found = parse_operator_metadata(V2)
    assert found.version == 2
    assert found.stores[0].schema_paths == (
        "file:/ck/state/1/_stateSchema/default/0_a",
        "file:/ck/b",
    )
    assert found.properties_json == '{"timeMode":"NoTime"}'


def test_pre_releases_wrote_one_schema_path() -> None:
    assert parse_operator_metadata(PRE_RELEASE).stores[0].schema_paths == (
        "file:/ck/state/1/_stateSchema/default/0_a",
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"v1", "not JSON"),
        (b"v1\n{}", "names no operator"),
        (b'v1\n{"operatorInfo":{"operatorId":0}}', "names no operator"),
        (b'v1\n{"operatorInfo":{"operatorName":"x"}}', "operatorId"),
        (V1.replace(b"[{", b"{").replace(b"}]", b"}"), "not a list of stores"),
        (V1.replace(b":4", b':"4"'), "numPartitions"),
        (PRE_RELEASE.replace(b'"file:/ck/state/1/_stateSchema/default/0_a"', b"7"), "schema paths"),
        (b"\xc3", "not UTF-8"),
    ],
)
def test_damage_has_its_own_words(data: bytes, words: str) -> None:
    with pytest.raises(MalformedFile, match=words):
        parse_operator_metadata(data)


def test_a_newer_version_names_both() -> None:
    with pytest.raises(UnknownVersion, match="'v3'; this floodmark reads up to 'v2'"):
        parse_operator_metadata(b"v3\n{}")
