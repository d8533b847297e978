"""Finds changed variables of transformWithState."""

from __future__ import annotations

import json
from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import STATE_ENCODING
from floodmark.checkpoint.layout import STATE
from floodmark.checkpoint.outline import OperatorOutline
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import TRANSFORMS, Comparison, families
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schema import difference, is_same, names, spark_accepts

RULE = Rule(
    "FM335",
    "state-variables-changed",
    Severity.ERROR,
    finds="State variables added, removed, or of another kind or schema.",
    matters="Spark knows a variable by its name. Its values have the schema with which they were "
    "written.",
    restart="Variables may come and go: one that goes loses its values. Another kind is "
    "refused (STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE), another schema too "
    "(STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE), unless "
    "spark.sql.streaming.stateStore.encodingFormat is avro and Avro can read the "
    "old one.",
    instead="`floodmark migrate` carries the variables over, with --with where their schema "
    "needs a function.",
)


_EXPIRY = "ttlExpirationMs"
"""The column that Spark puts beside a value with a TTL."""


def check(comparison: Comparison) -> Iterator[Reason]:
    for held, new in comparison.pairs_of(TRANSFORMS):
        where = f"{STATE}/{held.operator}"
        before, after = _variables(held), _variables(new)
        for name in sorted(after.keys() - before.keys()):
            yield reason(
                RULE,
                Verdict.COMPATIBLE,
                f"The variable {name} is new, and begins without a value.",
                where,
                do="Nothing.",
            )
        for name in sorted(before.keys() - after.keys()):
            yield reason(
                RULE,
                Verdict.COMPATIBLE,
                f"The variable {name} is gone; Spark drops its values at the next start.",
                where,
                do="Nothing, if you no longer want it.",
                silent=True,
            )
        for name in sorted(before.keys() & after.keys()):
            if before[name] != after[name]:
                yield reason(
                    RULE,
                    Verdict.NEEDS_MIGRATION,
                    f"The variable {name} is a {after[name]}, and was a {before[name]}.",
                    where,
                )
        yield from _schemas(comparison, held, new, before, after)


def _schemas(
    comparison: Comparison,
    held: OperatorOutline,
    new: OperatorOutline,
    kinds: dict[str, str],
    new_kinds: dict[str, str],
) -> Iterator[Reason]:
    evolves = comparison.checkpoint.conf.get(STATE_ENCODING, "unsaferow").lower() == "avro"
    for name, before, after in families(held, new):
        if name not in kinds or kinds[name] != new_kinds.get(name):
            continue
        if is_same(before.value_json, after.value_json):
            continue
        has, had = (_EXPIRY in names(one.value_json) for one in (after, before))
        if has is not had:
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION,
                f"The variable {name} {'has a' if has else 'has no'} TTL now, and had "
                f"{'one' if had else 'none'}.",
                f"{STATE}/{held.operator}",
                do="Keep the TTL as it was: `floodmark migrate` cannot carry the values. Or give "
                "the variable another name, under which it begins without a value.",
                migrate=None,
            )
            continue
        yield reason(
            RULE,
            Verdict.UNKNOWN if evolves else Verdict.NEEDS_MIGRATION,
            f"The variable {name}: {difference(before.value_json, after.value_json)}.",
            f"{STATE}/{held.operator}",
            do="Use --rehearse to see whether Avro reads the old values." if evolves else None,
            silent=evolves
            or spark_accepts(before.value_json, after.value_json)
            or comparison.is_unchecked(held.operator),
        )


def _variables(operator: OperatorOutline) -> dict[str, str]:
    try:
        found = json.loads(operator.properties_json or "{}").get("stateVariables", [])
    except (ValueError, AttributeError, RecursionError):
        return {}
    return {
        str(one.get("stateName")): str(one.get("stateVariableType"))
        for one in (found if isinstance(found, list) else ())
        if isinstance(one, dict) and not str(one.get("stateName")).startswith("$")
    }
