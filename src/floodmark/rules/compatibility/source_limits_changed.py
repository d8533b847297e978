"""Finds another rate limit of a source."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import SOURCES
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison, change_words, option_changes
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM305",
    "source-limits-changed",
    Severity.ADVICE,
    finds="maxOffsetsPerTrigger, maxFilesPerTrigger, maxBytesPerTrigger or a similar option that "
    "differs from the last start.",
    matters="These options say how much a batch takes, not where it begins.",
    restart="It starts; the batch in flight, if there is one, keeps the range it was planned with.",
    instead="Nothing.",
)


LIMITS = frozenset(
    {
        "maxoffsetspertrigger",
        "minoffsetspertrigger",
        "maxtriggerdelay",
        "maxfilespertrigger",
        "maxbytespertrigger",
        "minpartitions",
        "maxrecordsperpartition",
        "latestfirst",
        "maxfileage",
        "rowspersecond",
        "numpartitions",
        "rampuptime",
    }
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for at, before, after in comparison.noted_sources():
        for key, old, now in option_changes(before.options, after.options):
            if key in LIMITS:
                yield reason(
                    RULE,
                    Verdict.COMPATIBLE,
                    f"Source {at}: {change_words(key, old, now)}.",
                    f"{SOURCES}/{at}",
                )
