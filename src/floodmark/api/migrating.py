"""Provides the verbs that carry state to other code: `migrate`, and `bootstrap` from a table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from floodmark.api.arguments import (
    Storage,
    carrying_of,
    kept,
    require_spark_extra,
    script_options,
    settings_of,
    several_of,
)
from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS
from floodmark.errors import WrongUse
from floodmark.redaction import is_plain_setting

if TYPE_CHECKING:
    from floodmark.changes.apply import Carrying, Change
    from floodmark.changes.carry.origin import Origin
    from floodmark.changes.matching.fields import ColumnOptions
    from floodmark.changes.plan import Plan
    from floodmark.changes.planners.kept_operators import Drawn, Kept

_PINNED = ("spark.sql.streaming.", SHUFFLE_PARTITIONS)


def migrate(
    path: str,
    new: str,
    *,
    app: str,
    with_file: str | None = None,
    from_app: str | None = None,
    rename: str | Iterable[str] = (),
    default: str | Iterable[str] = (),
    merge: str | Iterable[str] = (),
    accept: str | Iterable[str] = (),
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    partitions: int | None = None,
    provider: str | None = None,
    state_format: int | None = None,
    drop_in_flight: bool = False,
    settings: Mapping[str, str] | None = None,
    scratch: str | None = None,
    on_spark: bool = False,
    old_ref: str | None = None,
    master: str | None = None,
    arguments: Iterable[str] = (),
    query: str | int | None = None,
    py_files: str | Iterable[str] = (),
    script_limit: float | None = None,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    start: Iterable[str] = (),
    carrying: Carrying | None = None,
) -> Change:
    """Make a checkpoint for the code of `app`, with the state of `path`.

    `with_file` is a MIGRATION.py. `from_app` is the old code, for aggregates that cannot be matched
    without it and a checkpoint without a note; `old_ref` is the git revision that has the old code
    at the path of `app`. `partitions`, `provider` and `state_format` also change how the state is
    stored. `start` has SOURCE=WHERE for new sources.
    """
    require_spark_extra()
    from floodmark.changes.apply import begin_new_place, plan_new_place
    from floodmark.changes.carry.resume_point import UpgradeOptions
    from floodmark.changes.named_places import absolute
    from floodmark.changes.planners.state_layout import StateLayout
    from floodmark.engine.state.migrate import MigrateOptions, MigrationPlan

    how = carrying_of(carrying, execute, wait, storage)
    pins, session = _settings(settings_of(conf, master))
    asked = MigrateOptions(
        app,
        with_file,
        from_app,
        _told(several_of(rename), several_of(default)),
        _pairs("--merge", several_of(merge)),
        _accepted(several_of(accept)),
        pins,
        settings or {},
        scratch,
        session,
        on_spark,
        script_options(arguments, query, py_files, script_limit),
        old_ref,
        StateLayout(partitions, provider, state_format),
        tuple(start),
    )
    require_free(new, how)
    with contextlib.ExitStack() as stack:
        made = MigrationPlan(
            asked, absolute(new), UpgradeOptions(drop_in_flight=drop_in_flight), how
        )

        def make(origin: Origin) -> Plan:
            return made.plan(origin, stack)

        # The rewriter is known only after the plan, when there is a session.
        how = replace(how, rewriter=made)
        change = begin_new_place(plan_new_place(path, new, make, how), how)
        return kept(change, how, out)


def skeleton(
    path: str,
    *,
    app: str,
    settings: Mapping[str, str] | None = None,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    master: str | None = None,
    arguments: Iterable[str] = (),
    query: str | int | None = None,
    py_files: str | Iterable[str] = (),
    script_limit: float | None = None,
    storage: Storage | None = None,
) -> str:
    """Return the text of a MIGRATION.py to begin with, with both schemas."""
    require_spark_extra()
    from floodmark.changes.carry.origin import open_origin
    from floodmark.changes.matching.skeleton import render_skeleton
    from floodmark.changes.named_places import absolute
    from floodmark.engine.code.drawing import ApplicationCode
    from floodmark.engine.state.migrate import drawn_beside
    from floodmark.storage.files import open_files

    location = absolute(path)
    origin = open_origin(open_files(location, storage), location)
    old: tuple[Kept, ...]
    drawn: Drawn
    pins, session = _settings(settings_of(conf, master))
    script = script_options(arguments, query, py_files, script_limit)
    old, drawn = drawn_beside(
        origin,
        ApplicationCode(app, settings or {}, session, script=script, checkpoints=(location,)),
        pins,
    )
    return render_skeleton(path, app, old, drawn)


def bootstrap(
    new: str,
    *,
    app: str,
    state: Mapping[str, str] | str,
    start: str | None = None,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    scratch: str | None = None,
    arguments: Iterable[str] = (),
    query: str | int | None = None,
    py_files: str | Iterable[str] = (),
    script_limit: float | None = None,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Make a new checkpoint for the code of `app`, with state from a table or a file.

    `state` is a table, or a file of Parquet, JSON or CSV; for several operators it is a mapping
    from `operator` or `operator/store` to a table or file.
    """
    require_spark_extra()
    from floodmark.changes.apply import begin_new_place
    from floodmark.changes.named_places import absolute
    from floodmark.engine.state.bootstrap import Bootstrap, bootstrap_plan

    how = carrying_of(carrying, execute, wait, storage)
    tables = {"0": state} if isinstance(state, str) else dict(state)
    asked = Bootstrap(
        app,
        tables,
        start,
        settings or {},
        scratch,
        _pairs("--conf", settings_of(conf, master)),
        script_options(arguments, query, py_files, script_limit),
    )
    require_free(new, how)
    with contextlib.ExitStack() as stack:
        made = bootstrap_plan(asked, absolute(new), how, stack)
        change = begin_new_place(made.plan, replace(how, rewriter=made.rewriter))
        return kept(change, how, out)


def require_free(new: str, carrying: Carrying) -> None:
    """Refuse a used location before Spark starts; only a begun change's plan can decide more."""
    from floodmark.changes import journal
    from floodmark.changes.execute import refuse_not_empty
    from floodmark.changes.named_places import absolute
    from floodmark.storage.files import open_files

    target = open_files(absolute(new), carrying.storage)
    if not journal.read_records(target):
        refuse_not_empty(target)


def _told(rename: Iterable[str], default: Iterable[str]) -> ColumnOptions:
    from floodmark.changes.matching.fields import ColumnOptions

    renames = {name: old for old, name in _pairs("--rename", rename).items()}
    defaults = {name: _value(text) for name, text in _pairs("--default", default).items()}
    return ColumnOptions(renames, defaults)


def _settings(conf: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split settings into those that a checkpoint pins and those of the session."""
    given = _pairs("--conf", conf)
    # A pin stays in the log: accept only settings that Spark knows, and no secrets.
    pins = {
        key: value
        for key, value in given.items()
        if key.startswith(_PINNED) and is_plain_setting(key, value)
    }
    return pins, {key: value for key, value in given.items() if key not in pins}


def _pairs(option: str, pairs: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = str(pair).partition("=")
        if not name or not equals:
            raise WrongUse(f"{option}: not NAME=VALUE", do=f"Write it as {option} NAME=VALUE.")
        found[name] = value
    return found


def _value(text: str) -> Any:
    """Return a value as JSON data; other text stays text."""
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _accepted(names: Iterable[str]) -> frozenset[str]:
    from floodmark.changes.matching.operators import ACCEPTED as OF_STATE
    from floodmark.rules.registry import rules_of
    from floodmark.rules.restarts.source_moves import DROPPED_SOURCE
    from floodmark.statestore.rewrite.spread import BY_ALL_KEYS

    rules = {one.rule.name for one in rules_of("compatibility")}
    known = (*OF_STATE, DROPPED_SOURCE, BY_ALL_KEYS)
    for name in names:
        if name not in known and name not in rules:
            raise WrongUse(
                f"--accept {name}: unknown name",
                f"The names are {', '.join(known)}, and the rules of `floodmark check`.",
                "Use the name from the refusal.",
            )
    return frozenset(names)
