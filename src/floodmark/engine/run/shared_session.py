"""The Spark session that the pipelines of a run share: what they want of it, and its start."""

from __future__ import annotations

from typing import Any

from floodmark.engine.pipelines.decorator import Pipeline, connectors_reached
from floodmark.engine.run.options import RunOptions
from floodmark.engine.spark.session import SessionOptions, build_session
from floodmark.errors import NotReachable, StoppedMidway, WrongUse


def shared_session(
    pipelines: tuple[Pipeline, ...], checkpoints: list[str], options: RunOptions
) -> Any:
    """Build the session; a missing master may come back, so its exit status says try again."""
    try:
        return build_session(_session_options(pipelines, checkpoints, options))
    except NotReachable as error:
        raise StoppedMidway(error.what, error.why, error.do) from error


def _session_options(
    pipelines: tuple[Pipeline, ...], checkpoints: list[str], options: RunOptions
) -> SessionOptions:
    conf: dict[str, str] = {}
    for pipeline in pipelines:
        for key, value in pipeline.conf.items():
            if conf.setdefault(key, value) != value and not key.startswith("spark.sql."):
                raise WrongUse(
                    f"two pipelines of the application want different values of {key}",
                    "The setting applies to the whole application.",
                    "Give both the same value, or run them as two applications.",
                )
    named = (need for pipeline in pipelines for need in pipeline.needs)
    needs = dict.fromkeys((*named, *connectors_reached(checkpoints)))
    name = "floodmark: " + ", ".join(pipeline.name for pipeline in pipelines)
    return SessionOptions(
        name, tuple(needs), {**conf, **options.conf}, options.log, options.stdout_to_stderr
    )
