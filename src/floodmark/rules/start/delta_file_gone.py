"""Finds data files of a Delta table that VACUUM removed before the stream read them."""

from __future__ import annotations

from floodmark.connectors.delta.reach import DeltaTrouble
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.start_inputs.table import by_trouble

RULE = Rule(
    "FM410",
    "delta-file-gone",
    Severity.ERROR,
    finds="Data files that the table's log adds next and that are not in its folder.",
    matters="VACUUM removed files that the stream had not read.",
    restart="The batch fails on the first missing file, at every start.",
    instead="Bring the files back, or begin with a new checkpoint that reads the table again.",
)

check = by_trouble(RULE, DeltaTrouble.FILES_GONE)
