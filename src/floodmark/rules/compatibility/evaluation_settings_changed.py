"""Finds session settings that change the results of expressions."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.outline import ANSI, TIME_ZONE, evaluating
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison, change_words
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.spark_defaults import ansi_mode, is_of_4, version_of, version_words

RULE = Rule(
    "FM355",
    "evaluation-settings-changed",
    Severity.WARNING,
    finds="Another time zone, ANSI mode, case sensitivity or legacy flag of the session than at "
    "the last start. ANSI mode is off by default in Spark 3 and on in Spark 4: an offset "
    "log that Spark 3 wrote is enough to show the mode.",
    matters="The same code then parses dates in another zone, overflows in another way, or "
    "finds other columns: keys and sums mean something else.",
    restart="The query starts without a warning. The checkpoint pins none of these settings.",
    instead="Set the old value again. If you intend the new value: --accept "
    "evaluation-settings-changed (`check`), --allow evaluation-settings-changed (`run`).",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    yield from _ansi(comparison)
    if comparison.last is None:
        return
    before, after = comparison.last.conf, comparison.new.conf
    for key in sorted(evaluating({**before, **after}) - {ANSI}):
        if key == TIME_ZONE and key not in before:
            yield _zone_unknown(after[key])
        elif before.get(key) != after.get(key):
            yield _changed(comparison, f"{change_words(key, before.get(key), after.get(key))}.")


def _ansi(comparison: Comparison) -> Iterator[Reason]:
    """Compare the ANSI modes; a session that sets none has the default of its Spark."""
    noted = comparison.last.conf if comparison.last is not None else {}
    planned, now = comparison.planned_by, version_of(comparison.new.spark_version)
    before, after = ansi_mode(noted, planned), ansi_mode(comparison.new.conf, now)
    if before is None and comparison.has_plans and is_of_4(comparison.checkpoint):
        before = "true"  # the default of every Spark since, whichever it was
    if before is None or before == after:
        return
    what = change_words(ANSI, before, after)
    if ANSI not in noted and planned is not None:
        what += f", the default of the Spark that planned the last batch ({version_words(planned)})"
    yield _changed(
        comparison,
        f"{what}.",
        "With it, an overflow, a cast that fails and a division by zero end the query; without, "
        "they give null or a wrapped number. The query starts without a warning.",
        f'Keep the old value: spark.conf.set("{ANSI}", "{before}"), or --conf {ANSI}={before}. If '
        "you intend the new value: --accept evaluation-settings-changed (`check`), --allow "
        "evaluation-settings-changed (`run`).",
    )


def _zone_unknown(now: str) -> Reason:
    """Report an unknown earlier zone: earlier releases noted a zone only if it was set."""
    return reason(
        RULE,
        Verdict.COMPATIBLE,
        f"{TIME_ZONE} is {now}. The earlier zone is not known: an earlier Floodmark wrote the "
        "note of the last start, and noted a zone only if one was set.",
        "the session",
        why="Spark used the zone of the machine then. If that was another one, dates are parsed "
        "in another zone from now on.",
        do=f"Nothing, if the machine's zone was {now} as well. Otherwise: --conf {TIME_ZONE}=ZONE.",
        silent=True,
    )


def _changed(
    comparison: Comparison, what: str, why: str | None = None, do: str | None = None
) -> Reason:
    if comparison.is_stateful:
        return reason(RULE, Verdict.UNKNOWN, what, "the session", why=why, do=do, silent=True)
    return reason(
        RULE,
        Verdict.COMPATIBLE,
        what,
        "the session",
        why=why or "The query starts; the new value counts from the next batch on.",
        do=do or "Nothing, if you intend that.",
    )
