"""The verbs that rewrite state and change no row: `repartition` and `convert`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from floodmark.api.arguments import Storage, carrying_of, kept, require_state_extra, several_of

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.changes.apply import Carrying, Change
    from floodmark.changes.carry.origin import Origin
    from floodmark.changes.plan import Plan


def repartition(
    path: str,
    new: str,
    *,
    partitions: int,
    on_spark: bool = False,
    accept: str | Iterable[str] = (),
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """A new checkpoint whose state is spread over another number of partitions."""
    require_state_extra()
    from floodmark.changes.apply import to_new_place
    from floodmark.changes.named_places import absolute
    from floodmark.changes.planners.repartition import plan_repartition

    def plan(origin: Origin) -> Plan:
        return plan_repartition(origin, absolute(new), partitions, several_of(accept))

    with _rewriting(on_spark, carrying_of(carrying, execute, wait, storage)) as how:
        return kept(to_new_place(str(path), str(new), plan, how), how, out)


def convert(
    path: str,
    new: str,
    *,
    provider: str,
    state_format: int | None = None,
    on_spark: bool = False,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """A new checkpoint whose state the other provider keeps; `state_format` 2 has unique ids."""
    require_state_extra()
    from floodmark.changes.apply import to_new_place
    from floodmark.changes.named_places import absolute
    from floodmark.changes.planners.convert import plan_convert

    def plan(origin: Origin) -> Plan:
        return plan_convert(origin, absolute(new), provider, state_format)

    with _rewriting(on_spark, carrying_of(carrying, execute, wait, storage)) as how:
        return kept(to_new_place(str(path), str(new), plan, how), how, out)


@contextmanager
def _rewriting(on_spark: bool, carrying: Carrying) -> Iterator[Carrying]:
    """In this process, or by the executors of a session: this process' own, or a new one."""
    if not (on_spark and carrying.execute):
        yield carrying
        return
    from floodmark.engine.spark.session import some_session
    from floodmark.engine.state.rewriting import SparkRewriter

    with some_session() as spark:
        yield replace(carrying, rewriter=SparkRewriter(spark=spark, storage=carrying.storage))
