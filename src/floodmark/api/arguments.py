"""Checks and converts arguments that several verbs take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.conf_keys import MASTER
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.errors import (
    NotACheckpoint,
    WrongUse,
    missing_for_state,
    no_pyspark,
    require_state_extra,
)

if TYPE_CHECKING:
    from floodmark.changes.apply import Carrying, Change
    from floodmark.engine.app.options import ScriptOptions

__all__ = [
    "Storage",
    "carrying_of",
    "kept",
    "milliseconds",
    "missing_for_state",
    "parse_settings",
    "require_spark_extra",
    "require_state_extra",
    "script_options",
    "seconds",
    "settings_of",
    "several_of",
    "spark_settings",
    "structured",
]

Storage = Mapping[str, Any]
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(s|sec|seconds?|m|min|minutes?|h|hours?)?")
MOST_SECONDS = 10 * 366 * 86_400.0
"""A clock can wait for so long, and not for ever."""
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def require_spark_extra(and_state: bool = True) -> None:
    """Report all missing packages of a verb at once, before the first import fails."""
    from importlib.util import find_spec

    lacks_state = and_state and bool(missing_for_state())
    if find_spec("pyspark") is None:
        raise no_pyspark("spark,state" if lacks_state else "spark")
    if and_state:
        require_state_extra()


def structured(checkpoint: Checkpoint) -> Checkpoint:
    if checkpoint.kind is Kind.DSTREAMS:
        raise NotACheckpoint(
            f"{checkpoint.path} is a DStreams checkpoint: it has no log of batches",
            "DStreams saves the whole application as one Java-serialised object.",
            "`floodmark inspect CP` shows what can be seen of it.",
        )
    return checkpoint


def milliseconds(at: datetime | str | None) -> int | None:
    if at is None:
        return None
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at.replace("Z", "+00:00"))
        except ValueError:
            raise WrongUse(
                f"{at!r} is not a time",
                do="Write it as 2026-11-15T10:00:00Z; without a zone it is your local time.",
            ) from None
    try:
        return round(at.timestamp() * 1000)  # without a zone: the local one
    except (ValueError, OverflowError, OSError):
        # Local time has no answer near the calendar's ends, where the zone does not matter.
        return int(at.replace(tzinfo=timezone.utc).timestamp() * 1000)


def seconds(length: float | str | None) -> float:
    """Return seconds for `90`, `"90s"`, `"2m"` or `"1h"`; None gives 0."""
    if length is None:
        return 0.0
    if isinstance(length, str):
        match = _LENGTH.fullmatch(length.strip())
        found = float(match[1]) * _SECONDS[(match[2] or "s")[0]] if match else -1.0
    else:
        found = float(length)
    if not 0 <= found <= MOST_SECONDS:
        raise WrongUse(
            f"{length!r} is not a length of time", do="Write a number and a unit: 90s, 2m, 1h."
        )
    return found


def several_of(given: str | Iterable[str]) -> tuple[str, ...]:
    """Return names as a tuple; a string alone is one name."""
    return (given,) if isinstance(given, str) else tuple(given)


def settings_of(
    conf: Mapping[str, Any] | str | Iterable[str], master: str | None = None
) -> tuple[str, ...]:
    """Return Spark's settings as KEY=VALUE, from a mapping or from the command line's form."""
    given = (
        tuple(f"{key}={value}" for key, value in conf.items())
        if isinstance(conf, Mapping)
        else several_of(conf)
    )
    return given if master is None else (*given, f"{MASTER}={master}")


def parse_settings(settings: tuple[str, ...], option: str = "--set") -> dict[str, str]:
    """Return `NAME=VALUE` texts as a map."""
    found: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise WrongUse(f"{option}: not NAME=VALUE", do=f"Write it as {option} NAME=VALUE.")
        found[name.strip()] = value
    if found:
        from floodmark.secret_text import remember_all

        remember_all(found)
    return found


def spark_settings(
    conf: Mapping[str, Any] | str | Iterable[str], master: str | None
) -> dict[str, str]:
    """Return Spark's settings as a map, with its master."""
    return parse_settings(settings_of(conf, master), "--conf")


def script_options(
    arguments: Iterable[str],
    query: str | int | None,
    py_files: str | Iterable[str],
    script_limit: float | None,
) -> ScriptOptions:
    from floodmark.engine.app.options import DEFAULT_LIMIT_SECONDS, ScriptOptions

    files = tuple(part for one in several_of(py_files) for part in one.split(",") if part)
    limit = DEFAULT_LIMIT_SECONDS if script_limit is None else script_limit
    named = None if query is None else str(query)
    return ScriptOptions(tuple(map(str, arguments)), named, files, limit)


def carrying_of(
    carrying: Carrying | None,
    execute: bool,
    wait: float | str | None,
    storage: Storage | None,
    *,
    read_data: bool = False,
    accept: str | Iterable[str] = (),
    watch: float | str | None = None,
) -> Carrying:
    """Return the options for executing a change; the command line gives its own object."""
    from floodmark.changes.apply import Carrying

    if carrying is not None:
        return carrying
    return Carrying(
        execute,
        None if wait is None else seconds(wait),
        storage,
        read_data=read_data,
        accept=several_of(accept),
        watch_seconds=seconds(watch),
    )


def kept(change: Change, carrying: Carrying, out: str | None) -> Change:
    """Save the change if that is requested, and prepare it for `apply()`."""
    if out is not None:
        from floodmark.changes.plan.saved import save_plan

        save_plan(change.plan, str(out))
    return replace(change, carrying=replace(carrying, rewriter=None))
