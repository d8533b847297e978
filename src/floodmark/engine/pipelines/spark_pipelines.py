"""Starts `spark-pipelines`, the runner of declarative pipelines, and waits for its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from floodmark.errors import WrongUse

_NAME = "spark-pipelines"


def run_spark_pipelines(
    spec: Path, conf: Mapping[str, str], arguments: Sequence[str], stdout_to_stderr: bool = False
) -> int:
    """Return the runner's own exit status; pass signals that stop this process on to the runner."""
    words = [str(_program()), "run", "--spec", str(spec.absolute())]
    for key, value in conf.items():
        words += ["--conf", f"{key}={value}"]
    environment = {**os.environ, "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
    # The runner has its own process group: Ctrl-C reaches this process, which passes it on once.
    running = subprocess.Popen(  # nosec B603: no shell, and the runner is this environment's own
        [*words, *arguments],
        env=environment,
        stdout=sys.stderr.fileno() if stdout_to_stderr else None,
        start_new_session=True,
    )

    def stop(number: int, frame: FrameType | None) -> None:
        os.killpg(running.pid, number)

    before = {one: signal.signal(one, stop) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        return running.wait()
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _program() -> Path:
    found = Path(sys.executable).with_name(_NAME)
    if not found.exists():
        raise WrongUse(
            f"{_NAME} is not beside {sys.executable}",
            "It comes with pyspark 4.1 and later.",
            "Install it here: pip install 'floodmark[pipelines]' 'pyspark>=4.1'",
        )
    return found
