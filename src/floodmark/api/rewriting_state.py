"""Provides `repartition` and `convert`, which store a stream differently and change no row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from floodmark.api.arguments import (
    Storage,
    carrying_of,
    kept,
    parse_settings,
    require_state_extra,
    settings_of,
    several_of,
)
from floodmark.errors import WrongUse

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
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    master: str | None = None,
    accept: str | Iterable[str] = (),
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Make a new checkpoint whose state is spread over another number of partitions."""
    require_state_extra()
    from floodmark.changes.apply import begin_new_place, plan_new_place
    from floodmark.changes.named_places import absolute
    from floodmark.changes.planners.repartition import plan_repartition

    def plan(origin: Origin) -> Plan:
        return plan_repartition(origin, absolute(new), partitions, several_of(accept))

    session = _session(on_spark, settings_of(conf, master))
    with _rewriting(session, carrying_of(carrying, execute, wait, storage)) as how:
        made = plan_new_place(str(path), str(new), plan, how)
        return kept(begin_new_place(made, how), how, out)


def convert(
    path: str,
    new: str,
    *,
    provider: str | None = None,
    state_format: int | None = None,
    name: Mapping[str, str] | None = None,
    on_spark: bool = False,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    master: str | None = None,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Make a new checkpoint with the other state provider, or with names for its sources.

    `state_format` 2 has unique ids. `name` gives every source a name, by its id:
    `{"0": "orders", "1": "payments"}`.
    """
    from floodmark.changes.apply import begin_new_place, plan_new_place
    from floodmark.changes.named_places import absolute

    names = {str(source): str(given) for source, given in (name or {}).items()}
    if provider is None:
        _require_what(state_format, names)
    else:
        require_state_extra()

    def plan(origin: Origin) -> Plan:
        base = _carried(origin, absolute(new), provider, state_format)
        if not names:
            return base
        from floodmark.changes.planners.named_sources import plan_named

        return plan_named(origin, base, names)

    session = _session(on_spark, settings_of(conf, master))
    with _rewriting(session, carrying_of(carrying, execute, wait, storage)) as how:
        made = plan_new_place(str(path), str(new), plan, how)
        return kept(begin_new_place(made, how), how, out)


def _require_what(state_format: int | None, names: Mapping[str, str]) -> None:
    if state_format is not None:
        raise WrongUse(
            "--state-format: no --provider",
            "Only RocksDB has this format.",
            "Add --provider rocksdb.",
        )
    if not names:
        raise WrongUse(
            "convert: nothing to convert",
            do="Choose another provider for the state (--provider rocksdb or --provider hdfs), or "
            "name the sources (--name 0=orders --name 1=payments).",
        )


def _carried(origin: Origin, new: str, provider: str | None, state_format: int | None) -> Plan:
    if provider is not None:
        from floodmark.changes.planners.convert import plan_convert

        return plan_convert(origin, new, provider, state_format)
    from floodmark.changes.carry.resume_point import UpgradeOptions
    from floodmark.changes.planners.upgrade import plan_upgrade

    return plan_upgrade(origin, new, UpgradeOptions())


def _session(on_spark: bool, given: tuple[str, ...]) -> dict[str, str] | None:
    """Return the settings of the Spark that rewrites; None where this process rewrites."""
    if given and not on_spark:
        raise WrongUse(
            "--conf and --master are for the Spark that --on-spark uses",
            "Without --on-spark this process writes the state.",
            "Add --on-spark, or leave them out.",
        )
    return parse_settings(given, "--conf") if on_spark else None


@contextmanager
def _rewriting(session: dict[str, str] | None, carrying: Carrying) -> Iterator[Carrying]:
    """Yield options for this process, or for the executors of its session or of a new one."""
    if session is None or not carrying.execute:
        yield carrying
        return
    from floodmark.engine.spark.session import some_session
    from floodmark.engine.state.spark_rewriter import SparkRewriter

    with some_session(conf=session) as spark:
        yield replace(carrying, rewriter=SparkRewriter(spark=spark, storage=carrying.storage))
