"""Builds the DataStreamWriter of an application: of a script or of a pipeline."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from floodmark.engine.app.built import Built, configure
from floodmark.engine.app.choosing import place_of
from floodmark.engine.app.dry_run import watching
from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.app.script_text import ScriptText, read_source
from floodmark.engine.app.scripts import built_script
from floodmark.engine.app.surroundings import fingerprint_with_modules, surroundings
from floodmark.engine.code.query import require_writer
from floodmark.engine.pipelines.application import (
    Application,
    load_application,
    split_target,
    where_in,
)
from floodmark.engine.pipelines.declarative import built_flow, split_spec
from floodmark.engine.pipelines.decorator import Pipeline, connectors_reached
from floodmark.engine.pipelines.parameters import refuse_unknown
from floodmark.engine.pipelines.start_positions import Start
from floodmark.engine.run.failure import sentence_of
from floodmark.engine.spark.session import SessionOptions, build_session, running_session
from floodmark.errors import FloodmarkError, WrongUse
from floodmark.storage.pipeline_spec import is_pipeline_spec


@contextlib.contextmanager
def built(
    target: str | Application,
    settings: Mapping[str, str] | None = None,
    *,
    checkpoints: tuple[str, ...] = (),
    start: Start | None = None,
    conf: Mapping[str, str] | None = None,
    log: Path | None = None,
    stdout_to_stderr: bool = False,
    script: ScriptOptions | None = None,
    all_settings: bool = True,
) -> Iterator[Built]:
    """Build the one query of `APP.py`, of `APP.py:NAME`, or of a loaded application; start nothing.

    The query belongs to a pipeline, to a script, or to a flow of a `spark-pipeline.yml[:FLOW]`.

    If there are several, the one whose checkpoint is among `checkpoints` is built. An existing
    session of this process is used, and left as it was. Without `all_settings`, settings that no
    pipeline of the file has are ignored.
    """
    if isinstance(target, str) and is_pipeline_spec(split_spec(target)[0]):
        with built_flow(target, checkpoints, conf or {}, log, stdout_to_stderr) as flow:
            yield flow
        return
    is_loaded = isinstance(target, Application)
    path, name = (target.path, None) if isinstance(target, Application) else split_target(target)
    source, options = read_source(path), script or ScriptOptions()
    if name is not None and options.query is None:
        options = replace(options, query=name)
    with contextlib.ExitStack() as closing:
        found = None
        if not is_loaded and not source.declares_pipelines():
            found = closing.enter_context(
                built_script(
                    source,
                    options,
                    checkpoints=checkpoints,
                    conf=conf or {},
                    log=log,
                    stdout_to_stderr=stdout_to_stderr,
                    is_old=not all_settings,
                )
            )
            if found is not None and settings and all_settings:
                raise WrongUse(
                    f"--set {next(iter(settings))}: {path} is a script, which has no parameters",
                    do=f"Give its own arguments after two dashes: {path.name} -- ARGUMENT",
                )
        if found is None:
            _refuse_arguments(path, options)
            one = _Pipelines(target, source, dict(settings or {}), all_settings, start or Start())
            if not one.is_loaded:
                closing.enter_context(surroundings((str(path.resolve().parent),)))
            found = closing.enter_context(one.built(checkpoints, conf or {}, log, stdout_to_stderr))
        yield found


@dataclass(frozen=True)
class _Pipelines:
    """A file that declares its pipelines as functions with @pipeline."""

    target: str | Application
    source: ScriptText
    settings: dict[str, str]
    all_settings: bool
    start: Start

    @property
    def is_loaded(self) -> bool:
        return isinstance(self.target, Application)

    @contextlib.contextmanager
    def built(
        self,
        checkpoints: tuple[str, ...],
        conf: Mapping[str, str],
        log: Path | None,
        stdout_to_stderr: bool,
    ) -> Iterator[Built]:
        application = self._loaded()
        if self.all_settings:
            known = {one.name: one.parameters for one in application.pipelines}
            refuse_unknown(known, self.settings)
        pipeline, values = _chosen(application, self.settings, checkpoints)
        wanted = {**pipeline.conf, **conf}
        running = running_session()
        if running is None:
            name = f"floodmark: {pipeline.name}"
            needs = pipeline.needs + connectors_reached(
                (*checkpoints, pipeline.checkpoint_for(values))
            )
            spark = build_session(SessionOptions(name, needs, wanted, log, stdout_to_stderr))
        else:
            spark = running.newSession()
        path = application.path

        def writer() -> Any:
            with watching(self.source):
                return call_pipeline(pipeline, str(path), spark, self.start, values)

        try:
            configure(spark, wanted)
            place, code = pipeline.checkpoint_for(values), application.fingerprint
            made = writer()
            whole = None if self.is_loaded else fingerprint_with_modules(code)
            yield Built(spark, path, code, pipeline.name, made, writer, place, values, whole)
        finally:
            if running is None:
                spark.stop()

    def _loaded(self) -> Application:
        if isinstance(self.target, Application):
            return self.target
        with watching(self.source):
            return load_application(self.target)


def _refuse_arguments(path: Path, options: ScriptOptions) -> None:
    if options.arguments:
        raise WrongUse(
            f"{path} has pipelines, which take no arguments after two dashes",
            do="Give a pipeline's parameters with --set NAME=VALUE.",
        )


def _chosen(
    application: Application, given: Mapping[str, str], checkpoints: tuple[str, ...]
) -> tuple[Pipeline, dict[str, Any]]:
    pipelines = application.pipelines
    if len(pipelines) > 1 and checkpoints:
        wanted = {place_of(one) for one in checkpoints}
        fitting = tuple(
            one
            for one in pipelines
            if not _misses(one, given)
            and place_of(one.checkpoint_for(_settled(one, given))) in wanted
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


def call_pipeline(
    pipeline: Pipeline, application: str | None, session: Any, start: Any, values: Mapping[str, Any]
) -> Any:
    """Call the user's function; report its exception with the user's own words."""
    try:
        writer = pipeline(session, start, **values)
    except FloodmarkError:
        raise
    except Exception as error:
        raise _failed(pipeline.name, application, error) from error
    require_writer(writer, f"pipeline {pipeline.name}")
    return writer


def _failed(pipeline: str, application: str | None, error: Exception) -> WrongUse:
    return WrongUse(
        f"pipeline {pipeline} fails before it starts: {type(error).__name__}: {sentence_of(error)}",
        where_in(application, error),
        "Set FLOODMARK_DEBUG=1 for the whole traceback.",
    )
