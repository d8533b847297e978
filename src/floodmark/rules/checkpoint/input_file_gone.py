"""Finds missing input files that the next batch reads."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import SOURCES
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation

RULE = Rule(
    "FM148",
    "input-file-gone",
    Severity.ERROR,
    finds="With --sources: files of the in-flight batch, or seen and waiting, that are no longer "
    "in the input folder.",
    matters="Somebody moved or removed files that the stream had listed and not yet read.",
    restart="The batch fails on the missing file, at every start; with "
    "spark.sql.files.ignoreMissingFiles it goes on without its records.",
    instead="Put the files back under the same names.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    if evidence.outside is None:
        return
    for source, files in evidence.outside.inputs.items():
        if files:
            more = f" and {len(files) - 1} more are" if len(files) > 1 else " is"
            yield RULE.finding(
                f"{SOURCES}/{source}",
                f"Source {source}: {files[0]}{more} in its list, but not in the folder.",
            )


def check_start(situation: Situation) -> Iterator[Finding]:
    for files in situation.outside.inputs.values():
        if files:
            many = f"{len(files):,} input files" if len(files) > 1 else "1 input file"
            are = "are gone, the first" if len(files) > 1 else "is gone:"
            yield RULE.finding(
                situation.location,
                f"{many} that the next batch reads {are} {files[0]}",
                why="The source has seen these files, but they are not committed yet. Spark "
                "fails on them, or silently skips them if "
                "spark.sql.files.ignoreMissingFiles is set.",
                do="Put the files back under the same names.",
            )
