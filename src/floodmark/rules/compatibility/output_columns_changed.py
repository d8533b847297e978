"""Finds changed columns for the sink."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.connectors.files.offset import FILE_SINKS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schema import fields, words

RULE = Rule(
    "FM312",
    "output-columns-changed",
    Severity.WARNING,
    finds="Rows for the sink with other names or types than at the last start.",
    matters="The change is allowed if the sink accepts the new columns. Rows that were written "
    "before have the old columns.",
    restart="The query starts. Delta fails in the first batch unless mergeSchema is set; files "
    "of both kinds lie in one folder; Kafka needs a column named value.",
    instead='Let the sink accept them: .option("mergeSchema", "true") for Delta. Files need a new '
    "folder, and with it a checkpoint that `floodmark migrate` or `floodmark upgrade` makes.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    last, new = comparison.last, comparison.new
    if last is None or not last.schema_json:
        return
    before = [(one.get("name"), one.get("type")) for one in fields(last.schema_json)]
    after = [(one.get("name"), one.get("type")) for one in fields(new.schema_json)]
    if before == after:
        return
    merges = new.sink_options.get("mergeschema", "").lower() == "true"
    risky = (new.sink == "delta" and not merges) or new.sink in FILE_SINKS
    yield reason(
        RULE,
        Verdict.UNKNOWN if risky else Verdict.COMPATIBLE,
        f"The sink receives {words(new.schema_json)}, and received {words(last.schema_json)} "
        "before.",
        f"the sink ({new.sink})",
        silent=True,
        do=None if risky else "Nothing, if the sink accepts them.",
    )
