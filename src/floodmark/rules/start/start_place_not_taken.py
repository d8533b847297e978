"""Finds a Delta source that does not begin where the checkpoint before it stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from floodmark.checkpoint.layout import START_FILE
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation

RULE = Rule(
    "FM411",
    "start-place-not-taken",
    Severity.ERROR,
    finds=f"A checkpoint without a batch whose {START_FILE} says at which version a Delta source "
    "goes on, and a query whose Delta source has no such startingVersion.",
    matters="`upgrade --without-state` writes the position of a Delta source into that file, "
    "because Delta accepts it only as an option of the reader.",
    restart="Spark begins with the table as it is now: every record comes a second time.",
    instead="Begin the Delta source at that version: --start with `start.delta()` in the pipeline, "
    'or .option("startingVersion", …) in a script.',
)


def check(situation: Situation) -> Iterator[Finding]:
    wanted = Counter(str(version) for version in situation.handed_over)
    given = Counter(source.options.get("startingversion", "") for source in situation.sources)
    for version in (wanted - given).elements():
        yield RULE.finding(
            situation.location,
            f"the checkpoint says that a Delta source goes on at version {version}, but no "
            "source of the query does",
            do=f"Start with --start {situation.location}/{START_FILE}, or give the source "
            f'.option("startingVersion", {version}).',
        )
