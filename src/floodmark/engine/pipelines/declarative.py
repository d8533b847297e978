"""The query of a flow of a declarative pipeline: its definitions are run, nothing is started.

`spark-pipelines` runs definitions against a Spark Connect server, which keeps the plans to
itself. Here they are run against a plain session, with a registry that only remembers them; the
flow's function then gives the same DataFrame.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from floodmark.checkpoint.places.flow import flow_place
from floodmark.engine.app.built import Built, configure
from floodmark.engine.app.running import watching
from floodmark.engine.app.source import read_source
from floodmark.engine.pipelines.application import where_in
from floodmark.engine.pipelines.pipeline import connectors_named
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

_VIEW = "TemporaryView"


def split_spec(target: str) -> tuple[str, str | None]:
    """The specification, and the flow that is named after a colon."""
    path, colon, name = target.rpartition(":")
    return (path, name or None) if colon and is_pipeline_spec(path) else (target, None)


@dataclass
class Definitions:
    """What the files of a pipeline define."""

    spec: PipelineSpec
    outputs: dict[str, Any] = field(default_factory=dict)
    flows: list[Any] = field(default_factory=list)
    sql_files: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def sql_words(self) -> str:
        count = len(self.sql_files)
        files = "1 file in SQL is" if count == 1 else f"{count} files in SQL are"
        return f"{files} not read: what they define is not known here."

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256("\0".join(self.texts).encode()).hexdigest()


@contextlib.contextmanager
def built_flow(
    target: str,
    checkpoints: tuple[str, ...],
    conf: Mapping[str, str],
    log: Path | None,
    stdout_to_stderr: bool,
) -> Iterator[Built]:
    """The writer of one flow, as the pipeline's runner would make it."""
    path, named = split_spec(target)
    with defined(path, conf, log, stdout_to_stderr) as (spark, found):
        flow = _chosen(found, named, checkpoints)
        again = _writing(spark, flow, found)
        yield Built(spark, found.spec.path, found.fingerprint, str(flow.name), again(), again)


@contextlib.contextmanager
def defined(
    path: str, conf: Mapping[str, str], log: Path | None, stdout_to_stderr: bool
) -> Iterator[tuple[Any, Definitions]]:
    """A session, and what the definitions of a pipeline define in it."""
    spec = read_pipeline_spec(path)
    every = definition_files(spec)
    files = [one for one in every if one.suffix == ".py"]
    wanted = {**spec.configuration, **conf}
    running = running_session()
    if running is None:
        needs = connectors_named("\n".join(read_source(file).text for file in files))
        name = f"floodmark: {spec.name}"
        spark = build_session(SessionOptions(name, needs, wanted, log, stdout_to_stderr))
    else:
        spark = running.newSession()
    try:
        configure(spark, wanted)
        with active_session(spark, running or spark):
            _use(spark, spec)
            found = _defined(spec, files)
            found.sql_files += [str(one) for one in every if one.suffix == ".sql"]
            _make_views(spark, found)
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
    """Raises where the flow does not stream, or cannot be built here."""


def flow_codes(spark: Any, found: Definitions) -> list[FlowCode]:
    return [
        FlowCode(_last(one.name), _last(one.target), _writing(spark, one, found))
        for one in found.flows
        if _kind(found, one) != _VIEW
    ]


def _writing(spark: Any, flow: Any, found: Definitions) -> Callable[[], Any]:
    def writer() -> Any:
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


def _defined(spec: PipelineSpec, files: list[Path]) -> Definitions:
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
            found.outputs[str(output.name)] = output

        def register_flow(self, flow: Any) -> None:
            found.flows.append(flow)

        def register_auto_cdc_flow(self, flow: Any) -> None:
            pass  # keeps its state in its table, not in a checkpoint's state

        def register_sql(self, sql_text: str, file_path: Path) -> None:
            pass  # those files are not run here

    folder = str(spec.path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        with graph_element_registration_context(Registry()):
            for file in files:
                _run(file, found)
    finally:
        sys.path.remove(folder)
    return found


def _run(file: Path, found: Definitions) -> None:
    source = read_source(file)
    found.texts.append(source.text)
    module_spec = importlib.util.spec_from_file_location(file.stem, file)
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
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


def _chosen(found: Definitions, named: str | None, checkpoints: tuple[str, ...]) -> Any:
    streams = [one for one in found.flows if _kind(found, one) != _VIEW]
    names = ", ".join(sorted(str(one.name) for one in streams)) or "none"
    wanted = {named} if named is not None else _flows_of(checkpoints)
    fitting = [one for one in streams if _last(one.name) in wanted or str(one.name) in wanted]
    if len(fitting) == 1:
        return fitting[0]
    shown = ", ".join(sorted(one for one in wanted if one)) or "no flow is named"
    in_sql = f" {found.sql_words}" if found.sql_files else ""
    raise WrongUse(
        f"{found.spec.path}: no flow of its Python definitions is meant: {shown}",
        f"They define: {names}.{in_sql} A flow that was renamed begins in a folder of its own, and "
        "leaves the one under its former name behind.",
        f"Name one: {found.spec.path}:FLOW",
    )


def _flows_of(checkpoints: tuple[str, ...]) -> set[str | None]:
    places = [flow_place(local_path(one) or one) for one in checkpoints]
    return {place.flow for place in places if place is not None}


def _last(name: object) -> str:
    return str(name).rpartition(".")[2]


def _kind(found: Definitions, flow: Any) -> str:
    return type(found.outputs.get(str(flow.target))).__name__


def _make_views(spark: Any, found: Definitions) -> None:
    """A view may read another one: they are made until no more can be."""
    waiting = [one for one in found.flows if _kind(found, one) == _VIEW]
    while waiting:
        left = []
        for one in waiting:
            try:
                one.func().createOrReplaceTempView(_last(one.target))
            except Exception:
                left.append(one)  # what reads it tells of it in its own words
        if len(left) == len(waiting):
            return
        waiting = left


def _writer(flow: Any, found: Definitions) -> Any:
    try:
        frame = flow.func()
    except Exception as error:
        raise WrongUse(
            f"flow {flow.name} fails: {type(error).__name__}: {sentence_of(error)}",
            where_in(str(flow.source_code_location.filename), error),
            "Where it reads another table of the pipeline, the session needs the catalog that has "
            "it: give its settings with --conf.",
        ) from error
    if not frame.isStreaming:
        raise WrongUse(
            f"flow {flow.name} does not stream",
            "What it reads is computed anew in each run, and has no checkpoint.",
            "Name a flow that reads with spark.readStream.",
        )
    writer = frame.writeStream.outputMode("append").queryName(str(flow.name))
    kind = getattr(found.outputs.get(str(flow.target)), "format", None)
    if kind is not None:
        writer = writer.format(kind)
    return writer.trigger(availableNow=True)
