"""Runs a script and returns the DataStreamWriter to judge, with its session."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from floodmark.engine.app.built import Built, configure
from floodmark.engine.app.caught_query import Caught, settle
from floodmark.engine.app.choosing import chosen, is_wanted, later_starts, place_of
from floodmark.engine.app.dry_run import ScriptOutcome, innermost_line, run_script
from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.app.script_text import ScriptText
from floodmark.engine.app.surroundings import at_home, fingerprint_with_modules
from floodmark.engine.pipelines.decorator import Pipeline
from floodmark.engine.run.failure import sentence_of
from floodmark.engine.spark.java import require_java
from floodmark.engine.spark.session import (
    active_session,
    for_own_sessions,
    forget_other_code,
    running_session,
    spark_version,
)
from floodmark.secret_text import redacted
from floodmark.visible import visible


@contextlib.contextmanager
def built_script(
    source: ScriptText,
    options: ScriptOptions,
    *,
    checkpoints: tuple[str, ...],
    conf: Mapping[str, str],
    log: Path | None,
    stdout_to_stderr: bool,
    is_old: bool = False,
) -> Iterator[Built | None]:
    """Yield the script's query; None for a file that starts nothing and has pipelines.

    For old code, which runs with the new code's arguments, nothing is printed.
    """
    running = running_session()
    with contextlib.ExitStack() as closing:
        module = closing.enter_context(at_home(source, options))
        if running is not None:
            closing.enter_context(_session_of_its_own(running, conf))
        else:
            require_java(spark_version())
            closing.callback(_end_session)

        def run() -> ScriptOutcome:
            def enough(found: tuple[Caught, ...]) -> bool:
                return any(is_wanted(one, options.query, checkpoints) for one in found)

            with for_own_sessions(source.path, source.text, conf, log, stdout_to_stderr):
                return run_script(source, options, module, enough)

        outcome = run()
        if not outcome.starts and any(isinstance(one, Pipeline) for one in outcome.names.values()):
            yield None
            return
        found = chosen(outcome, checkpoints)
        if not is_old:
            _tell(outcome, found, checkpoints)
        name = found.name or source.path.stem
        settle(found)

        def again() -> Any:
            anew = chosen(run(), checkpoints)
            settle(anew)
            return anew.writer

        writer = found.writer
        spark, place = writer._spark, found.checkpoint
        code = fingerprint_with_modules(source.fingerprint)
        yield Built(
            spark, source.path, source.fingerprint, name, writer, again, place, with_modules=code
        )


def _end_session() -> None:
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        running_session().stop()


@contextlib.contextmanager
def _session_of_its_own(running: Any, conf: Mapping[str, str]) -> Iterator[None]:
    """Make a session that SparkSession.builder gives to the script, with settings of its own."""
    session = running.newSession()
    forget_other_code(session, conf)
    configure(session, conf)
    with active_session(session, running):
        yield


def _tell(outcome: ScriptOutcome, found: Caught, checkpoints: tuple[str, ...]) -> None:
    """Report on standard error what was left out, and what was not examined."""
    path = outcome.source.path
    said = [f"{act.where(outcome.source)}: not carried out: {act.words}" for act in outcome.acts]
    error = outcome.ended or outcome.failed_thread
    if error is not None and not isinstance(error, SystemExit):
        line, _ = innermost_line(outcome.source, error)
        words = f"{type(error).__name__}: {sentence_of(error)}"
        said.append(f"{path}, line {line}: fails after the start, the rest is not judged: {words}")
    if found.checkpoint is None:
        said.append(f"{path}, line {found.line}: the query names no checkpointLocation")
    elif checkpoints and place_of(found.checkpoint) not in {place_of(one) for one in checkpoints}:
        said.append(
            f"{path}, line {found.line}: the code names the checkpoint {found.checkpoint}, "
            f"and is judged with {checkpoints[0]}"
        )
    for later in later_starts(outcome, found):
        said.append(
            f"{path}, line {later.line}: starts again on this checkpoint, which is judged with "
            f"line {found.line}; for this start: --query {later.number}"
        )
    for words in said:
        print(visible(f"floodmark: {redacted(words)}"), file=sys.stderr)
