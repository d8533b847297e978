"""Finds why a query ended: the batch, its offsets and the innermost cause."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

from floodmark.checkpoint.text import shorten
from floodmark.engine.start.saved import read_saved
from floodmark.errors import FloodmarkError
from floodmark.secret_text import redacted
from floodmark.storage.files import Files

_TRACEBACK = "Traceback (most recent call last)"
_JAVA = "Py4JJavaError"
_JAVA_CAUSES = (": ", "Caused by: ")
_PACKAGE = re.compile(r"^(?:Caused by)?: (?:[\w$]+\.)*")
_CARRIED = ("An error occurred", "An exception was thrown", "at ", "JVM", "Caused by:")
_CONDITION = re.compile(r"\s*\[([A-Z][A-Z0-9_.]+)\]")
# Addresses, ports, ids, times, numbers of tasks: every word with a digit in it.
_CHANGING = re.compile(r"[\w.:-]*\d[\w.:-]*")
_OUTAGE_EXCEPTIONS = frozenset(
    {
        "BrokerNotAvailableException",
        "ConnectException",
        "ConnectTimeoutException",
        "ConnectionAbortedError",
        "ConnectionRefusedError",
        "ConnectionResetError",
        "CoordinatorNotAvailableException",
        "DisconnectException",
        "HttpHostConnectException",
        "LeaderNotAvailableException",
        "NetworkException",
        "NoHttpResponseException",
        "NoRouteToHostException",
        "SafeModeException",
        "SocketException",
        "SocketTimeoutException",
        "StandbyException",
        "TimeoutError",
        "TimeoutException",
        "UnknownHostException",
    }
)
_OUTAGE_WORDS = re.compile(
    r"connection (to .* )?(refused|reset|failed|timed out|was closed|is closed)"
    r"|could not connect|server closed the connection|terminating connection"
    r"|the database system is|timed out|timeout expired|temporarily unavailable"
    r"|no space left|disk quota exceeded|read-only file system|input/output error"
    r"|stale file handle|host is unreachable|name or service not known|too many connections"
    r"|service unavailable|slow down",
    re.IGNORECASE,
)


class FailureKind(Enum):
    CODE = "code"
    """The batch itself fails: the same code with the same records fails again."""
    OUTAGE = "outage"
    """A broker, database or storage does not answer or has no space: waiting may help."""
    ENGINE = "engine"
    """The JVM has ended."""


@dataclass(frozen=True)
class Failure:
    batch: int | None
    """The batch that was in flight; None where the failure came before any batch was planned."""
    offsets: tuple[str, ...]
    """The ranges that the batch reads, one text for each source."""
    cause: str
    kind: FailureKind = FailureKind.CODE

    @property
    def signature(self) -> tuple[int | None, FailureKind, str]:
        """Return a value that is equal for the same failure, whatever numbers its text has."""
        return self.batch, self.kind, _CHANGING.sub("#", self.cause)[:300]

    @property
    def batch_words(self) -> str:
        return "the start" if self.batch is None else f"batch {self.batch}"


def is_outage(words: str) -> bool:
    """Whether an error's words say that another system does not answer, or has no space."""
    kinds = re.findall(r"\b[A-Z]\w+(?:Exception|Error)\b", words)
    return bool(_OUTAGE_WORDS.search(words)) or not _OUTAGE_EXCEPTIONS.isdisjoint(kinds)


def failure_of(query: Any, files: Files) -> Failure | None:
    """Return the failure; None for a query that ended without an exception."""
    exception = query._jsq.exception()
    if exception.isEmpty():
        return None
    batch, offsets = in_flight(files)
    # The outermost exception only repeats the cause, between the query's plan and its offsets.
    outermost = exception.get()
    cause = outermost.getCause() or outermost
    kind = FailureKind.OUTAGE if _tells_of_outage(cause) else FailureKind.CODE
    return Failure(batch, offsets, cause_of(cause), kind)


def _tells_of_outage(exception: Any) -> bool:
    while exception is not None:
        words = str(exception.getMessage() or "")
        if is_outage(f"{exception.getClass().getSimpleName()}: {python_cause(words) or words}"):
            return True
        exception = exception.getCause()
    return False


def condition_of(exception: Any) -> str | None:
    """Return Spark's name of the innermost error that has a name, like STREAM_FAILED."""
    found = None
    while exception is not None:
        named = _CONDITION.match(str(exception.getMessage() or ""))
        found = named[1] if named else found
        exception = exception.getCause()
    return found


def cause_of(exception: Any) -> str:
    kind, message = "", ""
    while exception is not None:
        words = str(exception.getMessage() or "")
        if words or not kind:
            kind, message = str(exception.getClass().getSimpleName()), words
        if _TRACEBACK in words:  # the exceptions below only show how Spark passed it on
            break
        exception = exception.getCause()
    # Redact before shortening: half a secret would not be recognised.
    message = redacted(message)
    return python_cause(message) or shorten(f"{kind}: {_first_line(message)}", 400).rstrip(": ")


def python_cause(message: str) -> str | None:
    """Extract `ValueError: no such region` from a traceback inside a Java exception."""
    if _TRACEBACK not in message:
        return None
    # Of chained tracebacks the last one counts; its frames are indented, its error is not.
    _, _, trace = message.rpartition(_TRACEBACK)
    lines = [line for line in trace.splitlines()[1:] if line.strip()]
    errors = [line for line in lines if not line[0].isspace()]
    if not errors:
        return None
    # A failed call into the JVM: the innermost of Java's own causes says what happened.
    causes = (
        [line for line in errors if line.startswith(_JAVA_CAUSES)] if _JAVA in errors[0] else []
    )
    error = errors[0] if not causes else _PACKAGE.sub("", causes[-1])
    return shorten(error.strip(), 400)


def sentence_of(error: BaseException) -> str:
    """Return an exception's message in one line; if Spark passed it on, the original cause."""
    words = redacted(str(error))
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    useful = [line for line in lines if not line.startswith(_CARRIED)]
    first = (useful or lines or [type(error).__name__])[0].lstrip(": ")
    return python_cause(words) or shorten(first, 400)


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), "")


def in_flight(files: Files) -> tuple[int | None, tuple[str, ...]]:
    """Return the batch that the next start runs again, and each source's range for it."""
    try:
        checkpoint = read_saved(files).checkpoint
    except FloodmarkError:
        return None, ()
    batch = checkpoint.in_flight_batch if checkpoint else None
    if checkpoint is None or batch is None:
        return None, ()
    before = {source.id: source.text for source in checkpoint.sources_of(batch - 1)}
    return batch, tuple(
        f"source {source.id} ({source.kind}): "
        f"{before.get(source.id) or 'its start'} → {source.text}"
        for source in checkpoint.sources_of(batch)
    )
