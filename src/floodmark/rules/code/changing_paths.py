"""Recognises paths that differ at every start."""

from __future__ import annotations

from floodmark.rules.code.facts import Value

_CHANGING = frozenset(
    {
        "now",
        "utcnow",
        "today",
        "time",
        "time_ns",
        "monotonic",
        "perf_counter",
        "strftime",
        "uuid1",
        "uuid4",
        "random",
        "randint",
        "randrange",
        "choice",
        "getrandbits",
        "token_hex",
        "token_urlsafe",
        "urandom",
        "getpid",
        "current_timestamp",
    }
)
_TEMPORARY = frozenset(
    {"mkdtemp", "TemporaryDirectory", "gettempdir", "NamedTemporaryFile", "mktemp"}
)


def changing_calls(value: Value) -> list[str]:
    """Return the calls with another result at each start: a time, a random part, a process id."""
    return _among(value, _CHANGING)


def temporary_calls(value: Value) -> list[str]:
    """Return the calls that make a temporary folder."""
    return _among(value, _TEMPORARY)


def _among(value: Value, names: frozenset[str]) -> list[str]:
    return sorted(call for call in value.calls if call.rsplit(".", 1)[-1].strip("()") in names)
