"""Reports a cluster that does not answer, or gives no executors, in time and in plain words."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from floodmark.checkpoint.conf_keys import MASTER
from floodmark.engine.run.failure import sentence_of
from floodmark.errors import FloodmarkError, NoAnswer, NotReachable, WrongUse
from floodmark.visible import visible

_STANDALONE = "spark://"
_ANSWERS_WITHIN = 5.0
_UNRESPONSIVE = "masters are unresponsive"
"""Words of Spark's log after it has asked for a minute."""
_ALONE_SECONDS = 30.0
_POLL_SECONDS = 2.0
_AGAIN = "Nothing was changed. When the master runs, repeat the command."


def is_standalone(conf: Mapping[str, str]) -> bool:
    return conf.get(MASTER, "").startswith(_STANDALONE)


def require_master(conf: Mapping[str, str]) -> None:
    """Refuse within seconds if no master of a standalone cluster accepts a connection."""
    if not is_standalone(conf):
        return
    why: list[str] = []
    for address in conf[MASTER].removeprefix(_STANDALONE).split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdecimal():
            raise WrongUse(
                f"--master {conf[MASTER]}: it is not spark://HOST:PORT",
                do="The master's page shows its address at the top; the port is usually 7077.",
            )
        try:
            place = (host.strip("[]"), int(port))
            socket.create_connection(place, timeout=_ANSWERS_WITHIN).close()
        except (OSError, OverflowError) as error:
            why.append(f"{address}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    raise _silent(conf, "; ".join(why) + ".")


def not_started(error: BaseException, conf: Mapping[str, str], log: Path | None) -> FloodmarkError:
    """Return why Spark has not started; a master may accept connections but never answer."""
    where = f"Spark's log is {log}." if log else ""
    if is_standalone(conf) and (log is None or _UNRESPONSIVE in log.read_text(errors="replace")):
        why = "It accepts connections, but registered no application within a minute."
        return _silent(conf, f"{why} {where}".strip())
    return WrongUse(f"Spark does not start: {sentence_of(error)}", where)


def _silent(conf: Mapping[str, str], why: str) -> NotReachable:
    return NotReachable(f"the master {conf[MASTER]} does not answer", why, _AGAIN)


def say_when_alone(spark: Any, alone_seconds: float = _ALONE_SECONDS) -> None:
    """Report, on a cluster, when an application has no executor for a while, or has one again.

    Spark itself only waits, and says so only in its log.
    """
    context = spark.sparkContext
    conf = context.getConf()
    # Executors come and go with the work there, so having none says nothing.
    by_need = conf.get("spark.dynamicAllocation.enabled", "false") == "true"
    if str(context.master).startswith("local") or by_need:
        return
    wanted = f"{conf.get('spark.executor.memory', '1g')} of memory"
    if conf.get("spark.executor.cores"):
        wanted = f"{conf.get('spark.executor.cores')} cores and {wanted}"
    watch = _Alone(
        f"the application has had no executor for {alone_seconds:.0f} seconds: no worker of "
        f"{context.master} has {wanted} free. Spark waits for one; the master's page shows its "
        "workers",
        alone_seconds,
        _said,
    )
    looks = threading.Thread(target=_look, args=(context, watch), daemon=True)
    looks.start()


def _said(words: str) -> None:
    print(visible(f"floodmark: {words}"), file=sys.stderr, flush=True)


class _Alone:
    """Tracks whether an application is without executors, and since when."""

    def __init__(self, words: str, enough: float, say: Callable[[str], None]) -> None:
        self._words, self._enough, self._say = words, enough, say
        self._since: float | None = None
        self._told = False

    def seen(self, executors: int, now: float) -> None:
        if executors:
            if self._told:
                self._say("there are executors again")
            self._since, self._told = None, False
            return
        self._since = now if self._since is None else self._since
        if not self._told and now - self._since >= self._enough:
            self._say(self._words)
            self._told = True


def _look(context: Any, watch: _Alone) -> None:
    with contextlib.suppress(Exception):  # the JVM has ended, or is about to
        while True:
            # The driver counts as one of them.
            found = len(context._jsc.sc().statusTracker().getExecutorInfos()) - 1
            watch.seen(found, time.monotonic())
            time.sleep(_POLL_SECONDS)


@contextlib.contextmanager
def by_executors(work: str) -> Iterator[None]:
    """Turn an error of the executors into one sentence, such as a lost worker."""
    from pyspark.errors import PySparkException

    try:
        yield
    except FloodmarkError:
        raise
    except Exception as error:
        is_sparks = isinstance(error, PySparkException)
        if not (is_sparks or type(error).__module__.startswith("py4j")):
            raise
        if "No module named 'floodmark'" in str(error):
            raise WrongUse(
                "the executors' Python has no floodmark",
                "The executors rewrite the state with floodmark's own code.",
                "Install floodmark on every worker, and name that Python: PYSPARK_PYTHON=PATH, or "
                "--conf spark.pyspark.python=PATH.",
            ) from None
        raise NoAnswer(f"the executors have not {work}: {sentence_of(error)}") from error
