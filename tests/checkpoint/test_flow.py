"""Where a flow of a declarative pipeline keeps its checkpoints, and which of them counts."""

from __future__ import annotations

import pytest

from floodmark.checkpoint.places.flow import FlowStatus, flow_at, flow_place, next_folder


def test_what_a_path_says() -> None:
    place = flow_place("s3://bucket/pipes/_checkpoints/spark_catalog/default/totals/by_day/12")
    assert place is not None
    assert (place.table, place.flow, place.number) == (
        "spark_catalog.default.totals",
        "by_day",
        12,
    )
    assert place.storage == "s3://bucket/pipes"
    assert place.folder.endswith("/totals/by_day")


@pytest.mark.parametrize(
    "path",
    [
        "/data/checkpoints/sales",
        "/data/_checkpoints/totals/totals",
        "/data/_checkpoints/totals/0",
        "/data/_checkpoints/0",
        "/data/_checkpoints/totals/totals/99999999999",
        "/data/_checkpoints/totals/totals/-1",
        "",
    ],
)
def test_other_paths_are_no_flow(path: str) -> None:
    assert flow_place(path) is None


def test_the_highest_number_counts() -> None:
    """As numbers, not as text: Spark takes 10 before 9, and leaves other names out."""
    names = ("9", "10", "lost+found", "2")
    at = {n: flow_place(f"/s/_checkpoints/sink/flow/{n}") for n in (9, 10)}
    assert at[9] is not None
    assert at[10] is not None
    assert flow_at(at[9], names, True).status is FlowStatus.SUPERSEDED
    assert flow_at(at[10], names, True).status is FlowStatus.CURRENT
    assert flow_at(at[10], names, False).status is FlowStatus.EMPTY
    assert flow_at(at[10], names, False).pipeline == "s"
    assert flow_at(at[10], names, False, "orders").pipeline == "orders"
    assert next_folder(at[9], names) == "/s/_checkpoints/sink/flow/11"
