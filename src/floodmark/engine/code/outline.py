"""Outlines new code with Spark, without its data and without its checkpoint.

The module takes the writer's plan, replaces each source by one that gives no rows and the
sink by one that keeps nothing, and runs one batch on a checkpoint of its own. Spark then
writes down the state that the query would keep: operators, their names and schemas.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from floodmark.checkpoint.conf_keys import (
    CHECKPOINT_LOCATION,
    SHUFFLE_PARTITIONS,
    SOURCE_EVOLUTION,
    STATE_FORMAT,
)
from floodmark.checkpoint.outline import OperatorOutline, Outline, SourceOutline
from floodmark.engine.code.empty_leaves import EmptyLeaves, frame_of, replace_leaves
from floodmark.engine.code.query import Query, read_query, sql_conf
from floodmark.engine.code.restart_conf import restart_conf
from floodmark.engine.run.failure import sentence_of
from floodmark.engine.spark.jvm import NOT_COMPILED
from floodmark.engine.spark.scala import jvm_field
from floodmark.errors import CannotOutline
from floodmark.redaction import Redaction
from floodmark.statestore.open import operator_outline
from floodmark.storage.files import open_files
from floodmark.storage.load import load

CHECKPOINT = "checkpoint"
_ENOUGH_SECONDS = 600
# One partition shows a schema as well as two hundred; the file names do not matter here.
# There are no rows, so Spark does not have to compile code for them.
_PLAIN = {
    SHUFFLE_PARTITIONS: "1",
    STATE_FORMAT: "1",
    **NOT_COMPILED,
}
# The replaced sources and the replaced sink have no names.
_UNNAMED = {
    SOURCE_EVOLUTION: "false",
    "spark.sql.streaming.queryEvolution.enableSinkEvolution": "false",
}


def outline(
    writer: Any,
    conf: Mapping[str, str] | None = None,
    folder: str | Path | None = None,
    redaction: Redaction | None = None,
    pinned: Mapping[str, str] | None = None,
) -> Outline:
    """Outline the query of a DataStreamWriter.

    `pinned` holds the settings that a checkpoint pins, which decide the state's formats; None is
    a query that has no checkpoint yet. `conf` overrides them. `folder` is an empty folder on this
    machine that keeps the checkpoint that Spark made, as `folder/checkpoint`. `redaction` is that
    of the note with which the outline is compared.
    """
    try:
        return _outlined(writer, conf or {}, folder, redaction, pinned)
    except CannotOutline as error:
        if pinned is None or not _is_possible_anew(writer, conf or {}):
            raise
        raise CannotOutline(
            "this Spark cannot continue the new code with the state formats of the checkpoint",
            error.why,
            "Without this state it can start: `floodmark upgrade CP NEW --without-state`. Or run "
            "the Spark that made the checkpoint.",
        ) from error


def _is_possible_anew(writer: Any, conf: Mapping[str, str]) -> bool:
    """Whether Spark can plan the code for a new checkpoint."""
    try:
        _outlined(writer, conf, None, None, None)
    except CannotOutline:
        return False
    return True


def _outlined(
    writer: Any,
    conf: Mapping[str, str],
    folder: str | Path | None,
    redaction: Redaction | None,
    pinned: Mapping[str, str] | None,
) -> Outline:
    query = read_query(writer)
    with _place(folder) as place:
        settings = {**_PLAIN, **restart_conf(writer._spark, pinned), **conf, **_UNNAMED}
        session = clone_session(writer._spark, settings)
        try:
            drawn = place / CHECKPOINT
            plan = jvm_field(writer._jwrite, "ds").queryExecution().analyzed()
            empty = EmptyLeaves(session, place)
            _run(frame_of(session, replace_leaves(plan, empty.instead_of)), query, drawn)
            files = open_files(str(drawn))
            checkpoint = load(files)
            operators = tuple(
                operator_outline(files, checkpoint, one.operator)
                for one in checkpoint.state_operators
            )
            return described(writer._spark, query, operators, checkpoint.conf, redaction)
        finally:
            for running in session.streams.active:
                running.stop()


def described(
    spark: Any,
    query: Query,
    operators: tuple[OperatorOutline, ...] = (),
    pinned: Mapping[str, str] | None = None,
    redaction: Redaction | None = None,
    of_old_code: bool = False,
) -> Outline:
    """Describe a query from its plan alone; nothing runs, and secrets are hidden as in notes."""
    redaction = redaction or Redaction.fresh()
    return Outline(
        tuple(
            SourceOutline(
                source.kind, redaction.options(source.options), source.schema_ddl, source.name
            )
            for source in query.sources
        ),
        query.sink,
        redaction.options(query.sink_told),
        query.output_mode,
        query.trigger,
        query.schema_json,
        query.tree,
        operators,
        redaction.conf(sql_conf(spark, of_old_code)),
        pinned or {},
        str(spark.version),
    )


@contextlib.contextmanager
def _place(folder: str | Path | None) -> Iterator[Path]:
    if folder is not None:
        yield Path(folder).resolve()
        return
    with tempfile.TemporaryDirectory(
        prefix="floodmark-outline-", ignore_cleanup_errors=True
    ) as made:
        yield Path(made)


def clone_session(spark: Any, conf: Mapping[str, str]) -> Any:
    """Return a session with the same settings, functions and views; changes stay inside it."""
    from pyspark.sql import SparkSession

    session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    for key, value in conf.items():
        # The pin of a newer Spark, or a static setting, does not apply to this session.
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def _run(frame: Any, query: Query, checkpoint: Path) -> None:
    from pyspark.errors import AnalysisException, PySparkException

    writer = frame.writeStream.format("noop").outputMode(query.output_mode.lower())
    writer = writer.option(CHECKPOINT_LOCATION, f"file://{checkpoint}").trigger(once=True)
    try:
        started = writer.start()
        ended = started.awaitTermination(_ENOUGH_SECONDS)
    except AnalysisException as error:
        raise CannotOutline(
            "Spark refuses the new code",
            sentence_of(error),
            "Correct the code: it would not start with a new checkpoint either.",
        ) from error
    except PySparkException as error:
        raise CannotOutline(
            "Spark fails to plan the new code, without any rows",
            sentence_of(error),
            "Correct the cause, then repeat the command.",
        ) from error
    if not ended:
        started.stop()
        raise CannotOutline("Spark did not plan the new code in ten minutes")
