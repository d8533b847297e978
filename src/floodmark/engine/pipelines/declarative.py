"""Builds the query of a declarative pipeline's flow: runs the definitions, starts nothing.

`spark-pipelines` runs definitions against a Spark Connect server, which does not show the plans.
This module runs them against a plain session, with a registry that only remembers them. The
flow's function then gives the same DataFrame.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodmark.checkpoint.places.flow import flow_place
from floodmark.engine.app.built import Built, configure
from floodmark.engine.app.dry_run import watching
from floodmark.engine.app.script_text import read_source
from floodmark.engine.pipelines.application import where_in
from floodmark.engine.pipelines.decorator import connectors_named
from floodmark.engine.pipelines.definitions import (
    Definitions,
    FlowDefinition,
    OutputDefinition,
    last_part,
)
from floodmark.engine.pipelines.sql_definitions import define_sql
from floodmark.engine.run.failure import sentence_of
from floodmark.engine.spark.session import (
    SessionOptions,
    active_session,
    build_session,
    running_session,
)
from floodmark.errors import FloodmarkError, WrongUse
from floodmark.storage.files import local_path
from floodmark.storage.pipeline_spec import (
    PipelineSpec,
    definition_files,
    is_pipeline_spec,
    read_pipeline_spec,
)


def split_spec(target: str) -> tuple[str, str | None]:
    """Return the specification, and the flow that is named after a colon."""
    path, colon, name = target.rpartition(":")
    return (path, name or None) if colon and is_pipeline_spec(path) else (target, None)


@contextlib.contextmanager
def built_flow(
    target: str,
    checkpoints: tuple[str, ...],
    conf: Mapping[str, str],
    log: Path | None,
    stdout_to_stderr: bool,
) -> Iterator[Built]:
    """Yield the writer of one flow, as the pipeline's runner would make it."""
    path, named = split_spec(target)
    with defined(path, conf, log, stdout_to_stderr) as (spark, found):
        flow = _chosen(found, named, checkpoints)
        again = _writing(spark, flow, found)
        yield Built(spark, found.spec.path, found.fingerprint, flow.name, again(), again)


@contextlib.contextmanager
def defined(
    path: str, conf: Mapping[str, str], log: Path | None, stdout_to_stderr: bool
) -> Iterator[tuple[Any, Definitions]]:
    """Yield a session, and what the pipeline's definitions define in it."""
    spec = read_pipeline_spec(path)
    files = definition_files(spec)
    wanted = {**spec.configuration, **conf}
    running = running_session()
    if running is None:
        python = [read_source(one).text for one in files if one.suffix == ".py"]
        needs = connectors_named("\n".join(python))
        name = f"floodmark: {spec.name}"
        spark = build_session(SessionOptions(name, needs, wanted, log, stdout_to_stderr))
    else:
        spark = running.newSession()
    try:
        configure(spark, wanted)
        with active_session(spark, running or spark):
            _use(spark, spec)
            found = _defined(spark, spec, files)
            found.own_conf.update(_own_conf(spark, found))
            _make_views(found)
            yield spark, found
    finally:
        if running is None:
            spark.stop()


@dataclass(frozen=True)
class FlowCode:
    """A flow of the definitions that may stream."""

    name: str
    table: str
    writer: Callable[[], Any]
    """Makes the writer; raises where the flow does not stream, or cannot be built here."""


def flow_codes(spark: Any, found: Definitions) -> list[FlowCode]:
    return [
        FlowCode(last_part(one.name), last_part(one.target), _writing(spark, one, found))
        for one in found.tables
    ]


def _own_conf(spark: Any, found: Definitions) -> dict[str, str | None]:
    keys = {key for one in found.flows for key in one.spark_conf}
    return {key: spark.conf.get(key, None) for key in keys if spark.conf.isModifiable(key)}


def _writing(spark: Any, flow: FlowDefinition, found: Definitions) -> Callable[[], Any]:
    def writer() -> Any:
        for key, value in found.own_conf.items():  # undo what another flow has set
            if value is None:
                spark.conf.unset(key)
            else:
                configure(spark, {key: value})
        configure(spark, flow.spark_conf)
        return _writer(flow, found)

    return writer


def _use(spark: Any, spec: PipelineSpec) -> None:
    from pyspark.errors import PySparkException

    try:
        if spec.catalog is not None:
            spark.catalog.setCurrentCatalog(spec.catalog)
        if spec.database is not None:
            spark.catalog.setCurrentDatabase(spec.database)
    except PySparkException as error:
        raise WrongUse(
            f"{spec.path}: its catalog or database cannot be reached",
            sentence_of(error),
            "Give the settings of the catalog with --conf, as the pipeline's runner has them.",
        ) from error


def _defined(spark: Any, spec: PipelineSpec, files: list[Path]) -> Definitions:
    try:
        from pyspark.pipelines.graph_element_registry import (
            GraphElementRegistry,
            graph_element_registration_context,
        )
    except ImportError as error:
        raise WrongUse(
            f"{spec.path}: this Spark has no declarative pipelines",
            str(error),
            "They came with Spark 4.1: pip install 'pyspark>=4.1'",
        ) from error
    found = Definitions(spec)

    class Registry(GraphElementRegistry):  # type: ignore[misc]
        def register_output(self, output: Any) -> None:
            kind = OutputDefinition(type(output).__name__, getattr(output, "format", None))
            found.outputs[str(output.name)] = kind

        def register_flow(self, flow: Any) -> None:
            file = Path(flow.source_code_location.filename)
            named = (str(flow.name), str(flow.target), dict(flow.spark_conf))
            found.flows.append(FlowDefinition(*named, flow.func, file))

        def register_auto_cdc_flow(self, flow: Any) -> None:
            found.not_judged.append((str(flow.name or flow.target), str(flow.target)))

        def register_sql(self, sql_text: str, file_path: Path) -> None:
            define_sql(spark, file_path, sql_text, found)

    folder = str(spec.folder)
    registry = Registry()
    sys.path.insert(0, folder)
    try:
        with _in_folder(spec), graph_element_registration_context(registry):
            for file in files:
                if file.suffix == ".sql":
                    found.texts.append(_text(file))
                    registry.register_sql(found.texts[-1], file)
                else:
                    _run(spark, file, found)
    finally:
        sys.path.remove(folder)
    return found


@contextlib.contextmanager
def _in_folder(spec: PipelineSpec) -> Iterator[None]:
    """Change to the specification's folder, as the runner does when it reads definitions."""
    before = Path.cwd()
    os.chdir(spec.folder)
    try:
        yield
    finally:
        os.chdir(before)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise WrongUse(f"{file} cannot be read: {error}", do="Save it as UTF-8 text.") from None


def _run(spark: Any, file: Path, found: Definitions) -> None:
    source = read_source(file)
    found.texts.append(source.text)
    module_spec = importlib.util.spec_from_file_location(file.stem, file)
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    module.__dict__["spark"] = spark  # as the runner does
    try:
        with watching(source):
            module_spec.loader.exec_module(module)
    except FloodmarkError:
        raise
    except Exception as error:
        raise WrongUse(
            f"{file} fails: {type(error).__name__}: {sentence_of(error)}",
            where_in(str(file), error),
            "Correct it: the pipeline would not start either.",
        ) from error


def _chosen(found: Definitions, named: str | None, checkpoints: tuple[str, ...]) -> FlowDefinition:
    names = ", ".join(sorted(one.name for one in found.tables)) or "none"
    wanted = {named} if named is not None else _flows_of(checkpoints)
    fitting = [one for one in found.tables if {last_part(one.name), one.name} & wanted]
    if len(fitting) == 1:
        return fitting[0]
    shown = ", ".join(sorted(one for one in wanted if one)) or "no flow is named"
    raise WrongUse(
        f"{found.spec.path}: cannot choose one of its flows: {shown}",
        f"They define: {names}. A flow that was renamed begins in a new folder, and "
        "leaves the folder of its former name behind.",
        f"Name one: {found.spec.path}:FLOW",
    )


def _flows_of(checkpoints: tuple[str, ...]) -> set[str | None]:
    places = [flow_place(local_path(one) or one) for one in checkpoints]
    return {place.flow for place in places if place is not None}


def _make_views(found: Definitions) -> None:
    """Create the views repeatedly until no more succeed, as a view may read another view."""
    waiting = found.views
    while waiting:
        left = []
        for one in waiting:
            try:
                with _in_folder(found.spec):
                    one.func().createOrReplaceTempView(last_part(one.target))
            except Exception:
                left.append(one)  # a flow that reads this view reports the error
        if len(left) == len(waiting):
            return
        waiting = left


def _writer(flow: FlowDefinition, found: Definitions) -> Any:
    try:
        with _in_folder(found.spec):
            frame = flow.func()
    except Exception as error:
        raise WrongUse(
            f"flow {flow.name} fails: {type(error).__name__}: {sentence_of(error)}",
            where_in(str(flow.file), error)
            if flow.line is None
            else f"{flow.file}, line {flow.line}.",
            "Where it reads another table of the pipeline, the session needs the catalog that has "
            "it: give its settings with --conf.",
        ) from error
    if not frame.isStreaming:
        raise WrongUse(
            f"flow {flow.name} does not stream",
            "Spark computes its input anew in each run, so it has no checkpoint.",
            "Name a flow that reads with spark.readStream, or in SQL from STREAM table.",
        )
    writer = frame.writeStream.outputMode("append").queryName(flow.name)
    output = found.output_of(flow)
    if output is not None and output.format is not None:
        writer = writer.format(output.format)
    return writer.trigger(availableNow=True)
