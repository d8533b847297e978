"""Finds a txnAppId that does not change with the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM209",
    "fixed-transaction-id",
    Severity.WARNING,
    finds='option("txnAppId", …) with a fixed text.',
    matters="Delta remembers the highest txnVersion of each txnAppId and ignores lower ones. A "
    "new checkpoint counts its batches from 0 again.",
    restart="With a new checkpoint, every batch up to the old number is dropped without a warning.",
    instead="Build it from something that changes with the checkpoint: the query's id, or a "
    "version that is also in the checkpoint's path.",
)


def check(code: Code) -> Iterator[Finding]:
    options = [*code.write_options, *(item for stream in code.streams for item in stream.options)]
    for option in options:
        if option.key.lower() == "txnappid" and option.value.known:
            yield RULE.finding(
                code.path,
                f"txnAppId is always {option.value.pattern!r}, whatever the checkpoint.",
                line=option.line,
            )
