"""Reports that a rehearsal on a fork of the checkpoint failed."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM352",
    "refused-in-rehearsal",
    Severity.ERROR,
    finds="A rehearsal that failed: the new code, a fork of the checkpoint, a sink that "
    "keeps nothing, one batch.",
    matters="Spark itself gives this verdict, whatever the rules say.",
    restart="The query would fail in the same way.",
    instead="See the other reasons for what changed. If there is none, the failure comes from "
    "the code or its data.",
)


# Spark's condition → what it leads to.
_VERDICTS = (
    ("STATE_STORE_KEY_SCHEMA", Verdict.NEEDS_MIGRATION),
    ("STATE_STORE_VALUE_SCHEMA", Verdict.NEEDS_MIGRATION),
    ("STATE_STORE_INVALID_VALUE_SCHEMA", Verdict.NEEDS_MIGRATION),
    ("STATE_STORE_INVALID_VARIABLE", Verdict.NEEDS_MIGRATION),
    ("STATE_STORE_INVALID_CONFIG", Verdict.NEEDS_MIGRATION),
    ("STREAMING_STATEFUL_OPERATOR", Verdict.NEEDS_MIGRATION),
)

_OF_OTHER_SOURCES = ("sources in the checkpoint offsets", "Wrong basePath")


def check(comparison: Comparison) -> Iterator[Reason]:
    rehearsal = comparison.rehearsal
    if rehearsal is None or rehearsal.ran:
        return
    condition = rehearsal.condition or ""
    verdicts = [verdict for prefix, verdict in _VERDICTS if condition.startswith(prefix)]
    verdict = verdicts[0] if verdicts else Verdict.UNKNOWN
    if any(words in rehearsal.words for words in _OF_OTHER_SOURCES):
        verdict = Verdict.NEEDS_NEW_CHECKPOINT
    yield reason(
        RULE,
        verdict,
        f"Spark says: {rehearsal.words}",
        f"batch {rehearsal.batch}",
    )
