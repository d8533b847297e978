"""By which id a rule finds a source of the query in the checkpoint."""

from __future__ import annotations

from typing import cast

import pytest

import samples
from floodmark.engine.code.query import Query, Source
from floodmark.engine.start.query_to_start import QueryToStart
from floodmark.engine.start.saved import Saved
from floodmark.storage.files import Files


def starting(log: bytes | None) -> QueryToStart:
    tree = samples.sales(1) | ({"offsets/0": log} if log else {})
    sources = (Source("rate", {}, "rate"), Source("kafka", {}, "kafka", name="orders"))
    query = Query(sources, "noop", {}, "append", "once", "", None, "")
    saved = Saved(log is not None, samples.checkpoint(tree) if log else None, False)
    return QueryToStart(None, "sales", "file:/ck", cast(Files, None), saved, query)


META = b'{"batchWatermarkMs":0,"batchTimestampMs":1}'


@pytest.mark.parametrize(
    ("log", "ids"),
    [
        (b"v2\n" + META + b'\n0:7\norders:{"orders":{"0":5}}', ["0", "orders"]),
        (b"v1\n" + META + b'\n7\n{"orders":{"0":5}}', ["0", "1"]),
        (None, ["0", "1"]),
    ],
)
def test_a_named_log_knows_sources_by_name_and_a_positional_one_by_place(
    log: bytes | None, ids: list[str]
) -> None:
    assert [known_as for known_as, _ in starting(log).sources] == ids
