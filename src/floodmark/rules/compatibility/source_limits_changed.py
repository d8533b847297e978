"""Finds a changed rate limit of a source."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import SOURCES
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison, change_words, option_changes
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.source_moves import LIMITS

RULE = Rule(
    "FM305",
    "source-limits-changed",
    Severity.ADVICE,
    finds="maxOffsetsPerTrigger, maxFilesPerTrigger, maxBytesPerTrigger or a similar option that "
    "differs from the last start.",
    matters="These options say how much a batch takes, not where it begins.",
    restart="The query starts; the batch in flight, if there is one, keeps the range it was "
    "planned with.",
    instead="Nothing.",
)


_COUNTED, _COUNTED_BY = "rate", ("rowspersecond", "rampuptime")
_COUNTED_ANEW = (
    "It starts. The offset of a rate source is a number of seconds, and its values are counted "
    "by the rate: some are left out, or come again."
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for at, before, after in comparison.noted_sources():
        for key, old, now in option_changes(before.options, after.options):
            if key in LIMITS:
                counted = after.kind == _COUNTED and key in _COUNTED_BY
                yield reason(
                    RULE,
                    Verdict.COMPATIBLE,
                    f"Source {at}: {change_words(key, old, now)}.",
                    f"{SOURCES}/{at}",
                    why=_COUNTED_ANEW if counted else None,
                )
