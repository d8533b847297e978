"""Finds a checkpoint without state under a query that keeps state."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import PROVIDER_CLASS
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import STATE
from floodmark.checkpoint.start_note import last_start
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM153",
    "state-gone",
    Severity.ERROR,
    finds="A checkpoint without `state/` of a query that keeps state, by the note of its last "
    "start.",
    matters="The logs do not show whether a query keeps state. Without the note this would look "
    "like the checkpoint of a query without state.",
    restart="The first batch fails with CANNOT_LOAD_STATE_STORE, because batch N starts from state "
    "version N.",
    instead="Restore `state/` from a backup: `floodmark repair CP --from-backup REPO`. Without "
    "one: `floodmark upgrade CP NEW --without-state` goes on in the sources with an empty state.",
    mends=(Mend.LOST_STATE,),
)
# Another class may keep its state wherever it likes.
_SPARKS_OWN = ("HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider")


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    committed = checkpoint.committed_batch
    if committed is None or not evidence.starts or not checkpoint.complete:
        return
    own = checkpoint.conf.get(PROVIDER_CLASS, _SPARKS_OWN[0]).endswith(_SPARKS_OWN)
    if checkpoint.state_operators or not own:
        return
    last = evidence.starts[-1]
    begun = last.note.get("next_batch")
    if not isinstance(begun, int) or begun > committed:
        return  # that start has not committed a batch, so it may have left no state
    kinds = _stateful_kinds(last.note)
    if kinds:
        yield RULE.finding(
            STATE,
            f"{last.path} says that the query keeps state ({', '.join(kinds)}), but there is no "
            f"state after batch {committed}.",
        )


def _stateful_kinds(note: object) -> list[str]:
    start = last_start(note if isinstance(note, dict) else None)
    tree = start.tree if start is not None else None
    return sorted({step.kind for step in tree.stateful}) if tree is not None else []
