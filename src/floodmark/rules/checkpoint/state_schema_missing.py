"""Finds state whose schema file is missing."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import STATE_CODEC
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import STATE, STATE_SCHEMA, schema_file
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM122",
    "state-schema-missing",
    Severity.WARNING,
    finds="A state store without its schema file, by a Spark that writes one (3.1 and later).",
    matters="Spark compares a changed query with the schema file, and readers of the state need "
    "it.",
    restart="Spark writes the running query's schema in its place, without a comparison: if the "
    "query has changed, rows are misread.",
    instead="Restore the file from a backup before the next start: `floodmark repair CP "
    "--from-backup REPO`.",
)
# In the conf of every offset entry since 3.1, the first Spark that wrote schema files.
_SINCE_3_1 = STATE_CODEC


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    if _SINCE_3_1 not in checkpoint.conf:
        return
    stores = {(file.operator, file.store) for file in checkpoint.state_files}
    for operator, store in sorted(stores):
        metadata = checkpoint.operators.get(operator)
        named = [
            f"{STATE}/{operator}/{STATE_SCHEMA}/{info.store_name}/{path.rsplit('/', 1)[-1]}"
            for info in (metadata.stores if metadata else ())
            for path in info.schema_paths
        ]
        plain = schema_file(operator, store)
        for path in named or [plain]:
            if path not in evidence.sizes:
                yield RULE.finding(
                    path, f"Operator {operator}, store {store}: the schema file {path} is missing."
                )
