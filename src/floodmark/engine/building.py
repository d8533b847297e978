"""From an application's name to a DataStreamWriter: session, settings, the user's function."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodmark.engine.application import Application, load_application, where_in
from floodmark.engine.parameters import refuse_unknown
from floodmark.engine.pipeline import Pipeline
from floodmark.engine.query import require_writer
from floodmark.engine.session import SessionWish, build_session, running_session
from floodmark.engine.starting import Start
from floodmark.errors import FloodmarkError, WrongUse


@dataclass(frozen=True)
class Built:
    """A pipeline's writer, not started, in a session that lives as long as the `with`."""

    spark: Any
    application: Application
    pipeline: Pipeline
    values: Mapping[str, Any]
    writer: Any


@contextlib.contextmanager
def built(
    target: str | Application,
    settings: Mapping[str, str] | None = None,
    *,
    checkpoint: str | None = None,
    start: Start | None = None,
    conf: Mapping[str, str] | None = None,
    log: Path | None = None,
    stdout_to_stderr: bool = False,
) -> Iterator[Built]:
    """The one pipeline of `APP.py`, of `APP.py:NAME`, or of what was loaded; nothing is started.

    Of several, the one whose checkpoint is `checkpoint`. A session that this process has
    already is used, and left as it was.
    """
    application = load_application(target) if isinstance(target, str) else target
    given = dict(settings or {})
    refuse_unknown({one.name: one.parameters for one in application.pipelines}, given)
    pipeline, values = _chosen(application, given, checkpoint)
    wanted = {**pipeline.conf, **(conf or {})}
    running = running_session()
    if running is None:
        name = f"floodmark: {pipeline.name}"
        wish = SessionWish(name, pipeline.needs, wanted, log, stdout_to_stderr)
        spark = build_session(wish)
    else:
        spark = running.newSession()
    try:
        configure(spark, wanted)
        writer = call_pipeline(pipeline, str(application.path), spark, start or Start(), values)
        yield Built(spark, application, pipeline, values, writer)
    finally:
        if running is None:
            spark.stop()


def _chosen(
    application: Application, given: Mapping[str, str], checkpoint: str | None
) -> tuple[Pipeline, dict[str, Any]]:
    pipelines = application.pipelines
    if len(pipelines) > 1 and checkpoint is not None:
        wanted = _absolute(checkpoint)
        fitting = tuple(
            one
            for one in pipelines
            if not _misses(one, given)
            and _absolute(one.checkpoint_for(_settled(one, given))) == wanted
        )
        pipelines = fitting or pipelines
    if len(pipelines) > 1:
        names = ", ".join(one.name for one in pipelines)
        raise WrongUse(
            f"{application.path} has {len(pipelines)} pipelines: {names}",
            do=f"Say which: {application.path}:{pipelines[0].name}",
        )
    return pipelines[0], _settled(pipelines[0], given)


def _misses(pipeline: Pipeline, given: Mapping[str, str]) -> bool:
    try:
        _settled(pipeline, given)
    except WrongUse:
        return True
    return False


def _settled(pipeline: Pipeline, given: Mapping[str, str]) -> dict[str, Any]:
    own = {one.name for one in pipeline.parameters}
    return pipeline.settle({key: value for key, value in given.items() if key in own})


def _absolute(location: str) -> str:
    place = location.removeprefix("file://").removeprefix("file:")
    return place.rstrip("/") if "://" in place else str(Path(place).resolve())


def configure(session: Any, conf: Mapping[str, str]) -> None:
    """Pipelines that share an application keep their SQL settings apart."""
    for key, value in conf.items():
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            session.conf.set(key, value)


def call_pipeline(
    pipeline: Pipeline, application: str | None, session: Any, start: Any, values: Mapping[str, Any]
) -> Any:
    """The user's function; what it raises is told in the user's own words."""
    try:
        writer = pipeline(session, start, **values)
    except FloodmarkError:
        raise
    except Exception as error:
        raise _failed(pipeline.name, application, error) from error
    require_writer(writer, f"pipeline {pipeline.name}")
    return writer


def _failed(pipeline: str, application: str | None, error: Exception) -> WrongUse:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = lines[0] if lines else ""
    return WrongUse(
        f"pipeline {pipeline} fails before it starts: {type(error).__name__}: {message}",
        where_in(application, error),
        "Set FLOODMARK_DEBUG=1 for the whole traceback.",
    )
