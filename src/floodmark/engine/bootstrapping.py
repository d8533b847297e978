"""State from a table or a file: rows for a first checkpoint, made and checked by Spark."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from floodmark.changes.bootstrap import FirstBatch, plan_bootstrap
from floodmark.changes.migrate import Drawn, Kept, goal_of
from floodmark.changes.plan import Plan
from floodmark.changes.reshape_rewriter import ReshapeRewriter
from floodmark.changes.shapes import JOIN
from floodmark.changes.verbs import Carrying
from floodmark.engine.drawing import Code, Drawing, drawing
from floodmark.engine.made_rows import Made, check_rows, fitted, is_void, rows_of, spool
from floodmark.engine.migrating import scratch_place
from floodmark.engine.migration import require_given
from floodmark.engine.starting import Start, read_start
from floodmark.errors import NoAnswer, WrongUse
from floodmark.state.given_rows import given_key, given_value
from floodmark.state.reshape import NotCarried
from floodmark.state.types import Struct, ddl, distinct
from floodmark.storage.state_reshape import Part

_FORMATS = ("parquet", "json", "csv", "orc")


@dataclass(frozen=True)
class Bootstrap:
    app: str
    tables: Mapping[str, str]
    """`operator` or `operator/store` → a table or a file."""
    start: str | None
    settings: Mapping[str, str]
    scratch: str | None
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, object]:
        return {
            "app": self.app,
            "state": dict(self.tables),
            "start": self.start,
            "set": dict(self.settings),
            "conf": dict(self.conf),
        }


@dataclass(frozen=True)
class Bootstrapped:
    plan: Plan
    rewriter: ReshapeRewriter


def bootstrap_plan(
    asked: Bootstrap, new: str, carrying: Carrying, stack: contextlib.ExitStack
) -> Bootstrapped:
    start = read_start(Path(asked.start)) if asked.start is not None else None
    code = Code(asked.app, asked.settings, asked.conf, start)
    found = stack.enter_context(drawing(code, {}))
    if not found.drawn.operators:
        raise NoAnswer(
            f"{asked.app} keeps no state",
            "Only aggregations, joins, deduplication and the like do.",
            "Start it without bootstrap.",
        )
    chosen = {_place(name, found.drawn): table for name, table in asked.tables.items()}
    places: dict[tuple[int, str], str] = {}
    scratch = scratch_place(found, asked.scratch, stack)
    for (operator, name), table in chosen.items():
        made = _made(found, operator, name, table)
        if not carrying.execute:
            fitted(made)
            continue
        place = f"{scratch}/{operator}-{name}"
        check_rows(made, spool(found.spark, made, place))
        places[operator, name] = place
    first = FirstBatch(found.offsets, found.commit, _kafka(found, start))
    plan = plan_bootstrap(new, found.drawn, first, list(chosen), asked.options)
    return Bootstrapped(plan, ReshapeRewriter(lambda operator: rows_of(places, operator)))


def _kafka(found: Drawing, start: Start | None) -> dict[str, Mapping[str, Any]]:
    """Where each Kafka source begins, if the start file says it."""
    import json

    if start is None:
        return {}
    offsets = {}
    for number, source in enumerate(found.outline.sources):
        topics = source.options.get("subscribe", "")
        if source.kind == "kafka" and topics:
            said = start.kafka(*topics.split(","), otherwise="")
            if said:
                offsets[str(number)] = json.loads(said)
    return offsets


def _place(name: str, drawn: Drawn) -> tuple[int, str]:
    number, _, store = name.partition("/")
    kept = next((one for one in drawn.operators if str(one.operator.number) == number), None)
    if kept is None:
        known = ", ".join(one.operator.words for one in drawn.operators)
        raise WrongUse(
            f"--state {name}=…: there is no such operator",
            f"The code has {known}.",
            "Name one of them: --state NUMBER=TABLE.",
        )
    readings = {(one.family or one.folder): one for one in kept.readings}
    if kept.operator.kind == JOIN or (not store and len(readings) == 1):
        store = next(iter(readings))
    if store not in readings:
        raise WrongUse(
            f"--state {name}=…: which rows of {kept.operator.words} are meant?",
            f"There are {', '.join(f'{number}/{one}' for one in readings)}.",
            f"Say it: --state {number}/NAME=TABLE.",
        )
    require_given(f"--state {name}=…", drawn, kept.operator.number, store)
    return kept.operator.number, store


def _made(found: Drawing, operator: int, name: str, table: str) -> Made:
    kept = next(one for one in found.drawn.operators if one.operator.number == operator)
    part = _part(kept, name)
    where = f"{table}, for operator {operator}"
    frame = _as_rows(_frame(found.spark, table), part, where)
    return Made(frame, part, kept.partitions, where)


def _part(kept: Kept, name: str) -> Part:
    return next(part for part in goal_of(kept, {}, 0, 1).parts if part.name == name)


def _frame(spark: Any, table: str) -> Any:
    from pyspark.errors import PySparkException

    kind = table.rsplit(".", 1)[-1].lower()
    try:
        if kind in _FORMATS or "/" in table:
            reader = spark.read.format(kind if kind in _FORMATS else "parquet")
            return reader.option("header", True).option("inferSchema", True).load(table)
        return spark.read.table(table)
    except PySparkException as error:
        raise WrongUse(
            f"{table}: Spark cannot read it",
            str(error).splitlines()[0],
            "Name a table, or a file that ends in .parquet, .json, .csv or .orc.",
        ) from error


def _as_rows(frame: Any, part: Part, where: str) -> Any:
    """Columns named as the key's and the value's, or `key` and `value` themselves."""
    from pyspark.sql import functions

    if sorted(frame.columns) == ["key", "value"]:
        return frame
    key, value = given_key(part.reading), given_value(part.reading)
    wanted = [*_names(key), *_names(value)]
    missing = [name for name in wanted if name not in frame.columns]
    other = [name for name in frame.columns if name not in wanted]
    if missing or other:
        raise NotCarried(
            f"{where}: it has the columns {', '.join(frame.columns)}",
            f"The state's key is {ddl(distinct(key))}, its value {ddl(distinct(value))}.",
            "Name the columns so, and leave out all others.",
        )
    return frame.select(
        functions.struct(*[functions.col(f"`{one}`") for one in _names(key)]).alias("key"),
        functions.struct(
            *[functions.col(f"`{one}`") for one in _names(value)]
            or [functions.lit(None).cast("int").alias("nothing")]
        ).alias("value"),
    )


def _names(schema: Struct) -> list[str]:
    return [field.name for field in distinct(schema).fields if not is_void(field.type)]
