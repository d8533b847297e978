"""The verbs that carry state to other code: `migrate`, and `bootstrap` from a table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from floodmark.api.arguments import require_state_extra
from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS
from floodmark.errors import WrongUse
from floodmark.redaction import is_plain_setting

if TYPE_CHECKING:
    from floodmark.changes.carry.origin import Origin
    from floodmark.changes.matching.fields import ColumnOptions
    from floodmark.changes.plan import Plan
    from floodmark.changes.planners.migrate import Drawn, Kept
    from floodmark.changes.verbs.carrying_out import Carrying, Change
    from floodmark.engine.app.options import ScriptOptions

_PINNED = ("spark.sql.streaming.", SHUFFLE_PARTITIONS)


def migrate(
    path: str,
    new: str,
    *,
    app: str,
    with_file: str | None = None,
    from_app: str | None = None,
    rename: Iterable[str] = (),
    default: Iterable[str] = (),
    merge: Iterable[str] = (),
    accept: Iterable[str] = (),
    conf: Iterable[str] = (),
    partitions: int | None = None,
    provider: str | None = None,
    state_format: int | None = None,
    drop_in_flight: bool = False,
    settings: Mapping[str, str] | None = None,
    scratch: str | None = None,
    on_spark: bool = False,
    script: ScriptOptions | None = None,
    old_ref: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """A checkpoint for the code of `app`, with the state of `path` in it.

    `with_file` is a MIGRATION.py; `from_app` the old code, where two aggregates could be
    meant and the checkpoint has no note of its last start; `old_ref` the revision of git that
    has the old code at the path of `app`. `partitions`, `provider` and `state_format` change how
    the state is kept, in the same pass.
    """
    require_state_extra()
    from floodmark.changes.carry.resume_point import UpgradeOptions
    from floodmark.changes.planners.state_layout import StateLayout
    from floodmark.changes.verbs import carrying_out as verbs
    from floodmark.engine.app.options import ScriptOptions
    from floodmark.engine.state.migrate import MigrateOptions, migration_plan

    how = carrying or verbs.Carrying()
    pins, session = _settings(conf)
    asked = MigrateOptions(
        app,
        with_file,
        from_app,
        _told(rename, default),
        _pairs("--merge", merge),
        _accepted(accept),
        pins,
        settings or {},
        scratch,
        session,
        on_spark,
        script or ScriptOptions(),
        old_ref,
        StateLayout(partitions, provider, state_format),
    )
    _require_free(new, how)
    with contextlib.ExitStack() as stack:
        made = migration_plan(
            asked, verbs.absolute(new), UpgradeOptions(drop_in_flight=drop_in_flight), how
        )

        def make(origin: Origin) -> Plan:
            return made.plan(origin, stack)

        # The rewriter is known when the plan is: by then there is a session.
        return verbs.to_new_place("migrate", path, new, make, replace(how, rewriter=made))


def skeleton(
    path: str,
    *,
    app: str,
    settings: Mapping[str, str] | None = None,
    conf: Iterable[str] = (),
    script: ScriptOptions | None = None,
    storage: Mapping[str, Any] | None = None,
) -> str:
    """The text of a MIGRATION.py to begin with: both schemas filled in."""
    require_state_extra()
    from floodmark.changes.carry.origin import open_origin
    from floodmark.changes.matching.skeleton import render_skeleton
    from floodmark.changes.verbs import carrying_out as verbs
    from floodmark.engine.code.drawing import ApplicationCode
    from floodmark.engine.state.migrate import drawn_beside
    from floodmark.storage.files import open_files

    location = verbs.absolute(path)
    origin = open_origin(open_files(location, storage), location)
    old: tuple[Kept, ...]
    drawn: Drawn
    pins, session = _settings(conf)
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
    conf: Iterable[str] = (),
    settings: Mapping[str, str] | None = None,
    scratch: str | None = None,
    script: ScriptOptions | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """A new checkpoint for the code of `app`, with state from a table or a file.

    `state` is a table, or a file of Parquet, JSON or CSV; for several operators a mapping of
    `operator` or `operator/store` to one each.
    """
    require_state_extra()
    from floodmark.changes.verbs import carrying_out as verbs
    from floodmark.engine.app.options import ScriptOptions
    from floodmark.engine.state.bootstrap import Bootstrap, bootstrap_plan

    how = carrying or verbs.Carrying()
    tables = {"0": state} if isinstance(state, str) else dict(state)
    asked = Bootstrap(
        app,
        tables,
        start,
        settings or {},
        scratch,
        _pairs("--conf", conf),
        script or ScriptOptions(),
    )
    _require_free(new, how)
    with contextlib.ExitStack() as stack:
        made = bootstrap_plan(asked, verbs.absolute(new), how, stack)
        return verbs.begin_new_place(made.plan, replace(how, rewriter=made.rewriter))


def _require_free(new: str, carrying: Carrying) -> None:
    """Said before Spark starts; where a change was begun, only its plan can tell."""
    from floodmark.changes import journal
    from floodmark.changes.apply import refuse_not_empty
    from floodmark.changes.verbs import carrying_out as verbs
    from floodmark.storage.files import open_files

    target = open_files(verbs.absolute(new), carrying.storage)
    if not journal.read_records(target):
        refuse_not_empty(target)


def _told(rename: Iterable[str], default: Iterable[str]) -> ColumnOptions:
    from floodmark.changes.matching.fields import ColumnOptions

    renames = {name: old for old, name in _pairs("--rename", rename).items()}
    defaults = {name: _value(text) for name, text in _pairs("--default", default).items()}
    return ColumnOptions(renames, defaults)


def _settings(conf: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """What a checkpoint pins, and what is the session's own."""
    given = _pairs("--conf", conf)
    # A pin is written into the log for good: only what Spark knows, and no secret.
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
            raise WrongUse(f"{option}: no NAME=VALUE", do=f"Write it as {option} NAME=VALUE.")
        found[name] = value
    return found


def _value(text: str) -> Any:
    """As JSON has it; what is no JSON is text."""
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text


def _accepted(names: Iterable[str]) -> frozenset[str]:
    from floodmark.changes.matching.operators import ACCEPTED
    from floodmark.rules.registry import rules_of
    from floodmark.statestore.rewrite.spread import BY_ALL_KEYS

    rules = {one.rule.name for one in rules_of("compatibility")}
    known = (*ACCEPTED, BY_ALL_KEYS)
    for name in names:
        if name not in known and name not in rules:
            raise WrongUse(
                f"--accept {name}: unknown name",
                f"There are {', '.join(known)}, and the rules of `floodmark check`.",
                "Name one of them, as the refusal does.",
            )
    return frozenset(names)
