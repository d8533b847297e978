"""Makes and checks the rows of a first checkpoint from a table or a file, with Spark."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from floodmark.changes.apply import Carrying
from floodmark.changes.plan import Plan
from floodmark.changes.planners.bootstrap import FirstBatch, plan_bootstrap
from floodmark.changes.planners.kept_operators import Drawn, Kept
from floodmark.changes.planners.migrate import goal_of
from floodmark.changes.state_rewriter import StateRewriter
from floodmark.checkpoint.operator_kinds import JOIN
from floodmark.checkpoint.outline import SourceOutline
from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.code.drawing import ApplicationCode, Drawing, drawing
from floodmark.engine.pipelines.start_positions import DeltaStart, KafkaStart, Start, read_start
from floodmark.engine.state.made_rows import Made, check_rows, fitted, is_void, rows_of, spool
from floodmark.engine.state.migrate import scratch_place
from floodmark.engine.state.migration_file import TO_BEGIN, family_of, require_given, variables
from floodmark.errors import NoAnswer, NotCarried, WrongUse
from floodmark.redaction import Redaction
from floodmark.secret_text import redacted
from floodmark.state.rows.given_rows import given_key, given_value
from floodmark.state.rows.types import Struct, ddl, distinct
from floodmark.statestore.rewrite.target import Part
from floodmark.storage.files import local_path

_FORMATS = ("parquet", "json", "csv", "orc")


@dataclass(frozen=True)
class Bootstrap:
    app: str
    tables: Mapping[str, str]
    """A table or a file for each `operator` or `operator/store`."""
    start: str | None
    settings: Mapping[str, str]
    scratch: str | None
    conf: Mapping[str, str] = field(default_factory=dict)
    script: ScriptOptions = field(default_factory=ScriptOptions)
    by_place: frozenset[str] | None = None
    """The names, `key` or `value`, whose fields may be taken by position where their names differ;
    None for a table whose columns have the state's names."""

    def options(self, redaction: Redaction) -> dict[str, object]:
        """Return the request for the plan; a repeated request gives the same."""
        return {
            "app": self.app,
            "state": {name: redacted(table) for name, table in self.tables.items()},
            "start": self.start,
            "set": redaction.parameters(self.settings),
            "conf": redaction.conf(self.conf),
            **self.script.shown(),
        }


@dataclass(frozen=True)
class Bootstrapped:
    plan: Plan
    rewriter: StateRewriter


def bootstrap_plan(
    asked: Bootstrap,
    new: str,
    carrying: Carrying,
    stack: contextlib.ExitStack,
    begin: Callable[[Drawing], FirstBatch] | None = None,
) -> Bootstrapped:
    """Plan a first checkpoint; `begin` gives the sources' positions, by default the code does."""
    for table in asked.tables.values():
        _require_there(table, asked.conf)
    start = read_start(Path(asked.start)) if asked.start is not None else None
    code = ApplicationCode(asked.app, asked.settings, asked.conf, start, asked.script, (new,))
    found = stack.enter_context(drawing(code, {}))
    if not found.drawn.operators:
        raise NoAnswer(
            f"{asked.app} keeps no state",
            "Only operators such as aggregations, joins and deduplication keep state.",
            "Start it without bootstrap.",
        )
    first = _first_batch(found, start) if begin is None else begin(found)
    chosen = {_place(name, found.drawn): table for name, table in asked.tables.items()}
    places: dict[tuple[int, str], str] = {}
    scratch = scratch_place(found, asked.scratch, stack)
    for (operator, name), table in chosen.items():
        made = _made(found, operator, name, table, asked.by_place)
        if not carrying.execute:
            fitted(made)
            continue
        place = f"{scratch}/{operator}-{name}"
        check_rows(made, spool(found.spark, made, place))
        places[operator, name] = place
    options = asked.options(Redaction.about(new))
    plan = plan_bootstrap(new, found.drawn, first, list(chosen), options)
    return Bootstrapped(plan, StateRewriter(lambda operator: rows_of(places, operator)))


def _first_batch(found: Drawing, start: Start | None) -> FirstBatch:
    if start is None:
        return FirstBatch(found.offsets, found.commit, {})
    sources = list(zip(found.folders, found.outline.sources, strict=True))
    kafka = kafka_beginnings(sources, start)
    return FirstBatch(found.offsets, found.commit, kafka, _delta_notes(start))


def _require_there(table: str, conf: Mapping[str, str]) -> None:
    """Refuse a file that does not exist, before Spark starts; a table cannot be checked here."""
    path = local_path(table)
    if path is None or not _is_file(table) or _may_be_elsewhere(table, conf):
        return
    if not Path(path).exists() and not _is_pattern(path):
        raise WrongUse(
            f"--state {table}: there is no such file",
            f"It would be {Path(path).absolute()}.",
            "Name a table, or a file or folder that ends in .parquet, .json, .csv or .orc.",
        )


def _may_be_elsewhere(table: str, conf: Mapping[str, str]) -> bool:
    """Whether Hadoop's settings, if there are any, may place a path without a scheme elsewhere."""
    if table.startswith("file:"):
        return False
    said = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
    return any(os.environ.get(name) for name in said) or any(
        key.endswith("fs.defaultFS") for key in conf
    )


def _is_pattern(path: str) -> bool:
    # Spark's patterns have more signs than Python's, so Spark looks for a path with any of them.
    return any(sign in path for sign in "*?[{")


def kafka_beginnings(
    sources: Sequence[tuple[str, SourceOutline]], start: Start
) -> dict[str, Mapping[str, Mapping[str, int]]]:
    """Return each Kafka source's folder below sources/, and the offsets where it begins."""
    said: dict[str, Mapping[str, int]] = {}
    for one in start.sources:
        if isinstance(one, KafkaStart):
            said.update(one.offsets)
    found: dict[str, Mapping[str, Mapping[str, int]]] = {}
    for folder, source in sources:
        topics = _topics(source, said) if source.kind == "kafka" else ()
        if any(topic in said for topic in topics):
            start.kafka(*topics)  # refuses a file that names some of the topics
            found[folder] = {topic: said[topic] for topic in topics}
    if said and not found:
        read = [source.place or source.kind for _, source in sources]
        raise WrongUse(
            f"{start.origin}: no source of the code reads {', '.join(said)}",
            f"Its sources: {', '.join(read)}.",
            "Name the topics as the code does.",
        )
    for offsets in found.values():
        _require_numbers(offsets, start.origin)
    return found


def _topics(source: SourceOutline, said: Iterable[str]) -> tuple[str, ...]:
    options = source.options
    if "subscribepattern" in options:
        return _matching(options["subscribepattern"].strip(), said)
    if "assign" in options:
        return tuple(json.loads(options["assign"]))
    return tuple(filter(None, map(str.strip, options.get("subscribe", "").split(","))))


def _matching(pattern: str, topics: Iterable[str]) -> tuple[str, ...]:
    try:
        return tuple(topic for topic in topics if re.fullmatch(pattern, topic))
    except re.error as error:
        raise WrongUse(
            f"subscribePattern {pattern}: Python does not understand it ({error})",
            "Java's patterns have signs that Python does not know.",
            "For the bootstrap, use subscribe to name the topics.",
        ) from None


def _require_numbers(offsets: Mapping[str, Mapping[str, int]], origin: str) -> None:
    for topic, partitions in offsets.items():
        for partition, offset in partitions.items():
            if offset < 0:
                raise WrongUse(
                    f"{origin}: {topic}, partition {partition}: {offset} is not a position",
                    "-2 and -1 are resolved when a stream starts; a checkpoint needs real offsets.",
                    "Give the offset after the last record that is in the state.",
                )


def _delta_notes(start: Start) -> tuple[str, ...]:
    if not any(isinstance(one, DeltaStart) for one in start.sources):
        return ()
    return (
        "A Delta source's own option says where it begins: give `run` the same --start "
        f"{start.origin} until its first batch is done.",
    )


def _place(name: str, drawn: Drawn) -> tuple[int, str]:
    number, _, store = name.partition("/")
    kept = next((one for one in drawn.operators if str(one.operator.number) == number), None)
    if kept is None:
        known = ", ".join(one.operator.words for one in drawn.operators)
        raise WrongUse(
            f"--state {name}=…: there is no such operator",
            f"The code has {known}.",
            "Name one of these operators: --state NUMBER=TABLE.",
        )
    readings = {(one.family or one.folder): one for one in kept.readings}
    store = family_of(store, readings)
    if kept.operator.kind == JOIN or (not store and len(readings) == 1):
        store = next(iter(readings))
    if store not in readings:
        raise WrongUse(
            f"--state {name}=…: it names no store of {kept.operator.words}",
            f"There are {', '.join(f'{number}/{one}' for one in variables(readings))}.",
            f"Name one: --state {number}/NAME=TABLE.",
        )
    require_given(f"--state {name}=…", drawn, kept.operator.number, store, TO_BEGIN)
    return kept.operator.number, store


def _made(
    found: Drawing, operator: int, name: str, table: str, by_place: frozenset[str] | None
) -> Made:
    kept = next(one for one in found.drawn.operators if one.operator.number == operator)
    part = _part(kept, name)
    where = f"{table}, for operator {operator}"
    held = _frame(found.spark, table)
    rows = _as_rows(held, part, where) if by_place is None else _by_place(held, part, by_place)
    return Made(rows, part, kept.partitions, where)


def _part(kept: Kept, name: str) -> Part:
    return next(part for part in goal_of(kept, {}, 0, 1).parts if part.name == name)


def _ending(table: str) -> str:
    return table.rsplit(".", 1)[-1].lower()


def _is_file(table: str) -> bool:
    # delta.`/data/totals` is a table, in Spark's own notation.
    return "`" not in table and (_ending(table) in _FORMATS or "/" in table)


def _frame(spark: Any, table: str) -> Any:
    from pyspark.errors import PySparkException

    try:
        if _is_file(table):
            reader = spark.read.format(_ending(table) if _ending(table) in _FORMATS else "parquet")
            return reader.option("header", True).option("inferSchema", True).load(table)
        return spark.read.table(table)
    except PySparkException as error:
        raise WrongUse(
            f"{table}: Spark cannot read it",
            str(error).splitlines()[0],
            "Name a table, or a file that ends in .parquet, .json, .csv or .orc.",
        ) from error


def _as_rows(frame: Any, part: Part, where: str) -> Any:
    """Return rows from columns named as in the state, or from `key` and `value` themselves.

    `floodmark state --export` also writes partitions, which may be different now.
    """
    from pyspark.sql import functions

    if sorted(frame.columns) in (["key", "value"], ["key", "partition", "value"]):
        return frame.select("key", "value")
    key, value = given_key(part.reading), given_value(part.reading)
    wanted = [*_names(key), *_names(value)]
    missing = [name for name in wanted if name not in frame.columns]
    other = [name for name in frame.columns if name not in wanted]
    if missing or other:
        raise NotCarried(
            f"{where}: its columns are {', '.join(frame.columns)}",
            f"The state's key is {ddl(distinct(key))}, its value {ddl(distinct(value))}.",
            "Use exactly these column names.",
        )
    return frame.select(
        functions.struct(*[functions.col(f"`{one}`") for one in _names(key)]).alias("key"),
        functions.struct(
            *[functions.col(f"`{one}`") for one in _names(value)]
            or [functions.lit(None).cast("int").alias("nothing")]
        ).alias("value"),
    )


def _by_place(frame: Any, part: Part, ordered: frozenset[str]) -> Any:
    """Return rows of `key` and `value` whose fields have other names, in the fields' order.

    A column that is not `ordered` is an object of a class: only names identify its fields.
    """
    from pyspark.sql import functions

    columns = []
    for column, schema in (("key", given_key(part.reading)), ("value", given_value(part.reading))):
        wanted = _names(schema)
        held = [one.name for one in frame.schema[column].dataType.fields]
        same = sorted(held) == sorted(wanted)
        names = wanted if same else held
        if not same and len(held) > 1 and column not in ordered:
            raise NotCarried(
                f"the old state's {column} is an object with the fields {', '.join(sorted(held))}",
                f"The new state's {column} is {ddl(distinct(schema))}. Java keeps no order "
                "of an object's fields, so Floodmark cannot match them.",
                "Give a function that puts them in the order of the new state: --with FILE.py, "
                f"with def state(key, value): return key, (value['{held[0]}'], …)",
            )
        if len(names) != len(wanted):
            raise NotCarried(
                f"the old state's {column} has the fields {', '.join(held)}",
                f"The new state's {column} is {ddl(distinct(schema))}.",
                "Give a function that turns one into the other: --with FILE.py, with "
                "def state(key, value): return {…}, {…}",
            )
        fields = [
            functions.col(f"{column}.`{old}`").alias(new)
            for old, new in zip(names, wanted, strict=True)
        ]
        columns.append(functions.struct(*fields).alias(column))
    return frame.select(*columns)


def _names(schema: Struct) -> list[str]:
    return [field.name for field in distinct(schema).fields if not is_void(field.type)]
