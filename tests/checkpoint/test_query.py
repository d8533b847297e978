from __future__ import annotations

import pytest

from floodmark.checkpoint.query import new_metadata, parse_metadata, render_metadata
from floodmark.errors import MalformedFile

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
def test_damage_has_its_own_words(data: bytes, words: str) -> None:
    with pytest.raises(MalformedFile, match=words):
        parse_metadata(data)
