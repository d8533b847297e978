"""Builds and executes the plans of `repartition` and `convert`."""

from __future__ import annotations

from floodmark.changes.planners.convert import plan_convert
from floodmark.changes.planners.repartition import plan_repartition
from floodmark.changes.verbs.carrying_out import Carrying, Change, absolute, to_new_place


def repartition(
    path: str, new: str, partitions: int, accept: tuple[str, ...], carrying: Carrying
) -> Change:
    return to_new_place(
        "repartition",
        path,
        new,
        lambda origin: plan_repartition(origin, absolute(new), partitions, accept),
        carrying,
    )


def convert(
    path: str, new: str, provider: str, state_format: int | None, carrying: Carrying
) -> Change:
    return to_new_place(
        "convert",
        path,
        new,
        lambda origin: plan_convert(origin, absolute(new), provider, state_format),
        carrying,
    )
