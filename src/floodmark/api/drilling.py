"""Provides the drill: does a pipeline survive a crash at each point of a batch?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from floodmark.api.arguments import require_spark_extra, script_options, several_of, spark_settings

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.engine.drill.drill import Drill as Drill


def drill(
    target: str,
    *,
    input: str | Iterable[str],
    sink: str | None = None,
    point: str | Iterable[str] = (),
    random: int = 1,
    seed: int = 0,
    ignore: str | Iterable[str] = (),
    limit: int = 5,
    fresh: bool = False,
    scratch: str | None = None,
    settings: Mapping[str, str] | None = None,
    arguments: Iterable[str] = (),
    query: str | int | None = None,
    py_files: str | Iterable[str] = (),
    script_limit: float | None = None,
    master: str | None = None,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    say: Callable[[str], Any] = lambda words: None,
) -> Drill:
    """Run a pipeline over a sample, undisturbed and with its driver killed at each point.

    `input` is a folder, a file of JSON lines or a Kafka topic, one for each stream that the code
    reads. The runs work on copies of the pipeline's checkpoint and sinks in a scratch folder. With
    `fresh`, and where there are none yet, the runs make new ones. The pipeline's own are not
    touched.
    """
    require_spark_extra(and_state=False)
    from floodmark.engine.drill.drill import DrillOptions, drill_application

    return drill_application(
        DrillOptions(
            str(target),
            several_of(input),
            sink,
            several_of(point),
            random,
            several_of(ignore),
            limit,
            seed,
            fresh,
            scratch,
            settings or {},
            spark_settings(conf, master),
            script_options(arguments, query, py_files, script_limit),
            say,
        )
    )
