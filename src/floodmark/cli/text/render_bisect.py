"""Prints the report of `floodmark run --bisect`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from floodmark.cli import options
from floodmark.cli.text import echo

if TYPE_CHECKING:
    from floodmark.api.running import BisectReport


def show(report: BisectReport, as_json: bool) -> None:
    """Print the report; exit with status 1 if the batch fails, whether or not a record is found."""
    if as_json:
        options.show_json(report)
    else:
        for line in words_of(report):
            echo(line)
    if report.cause is not None:
        sys.exit(1)


def words_of(report: BisectReport) -> list[str]:
    tried = "1 trial" if report.trials == 1 else f"{report.trials} trials"
    head = [f"{report.checkpoint}: batch {report.batch}, {tried} on a fork", *report.offsets, ""]
    if report.cause is None:
        return [*head, *_not_failing(report)]
    told = [*head, f"The batch fails with: {report.cause}", ""]
    if not report.needs_records:
        return [*told, "It fails in the same way without any record: no record is to blame."]
    for culprit in report.culprits:
        if len(culprit.records) == 1:
            told.append(f"This record alone fails: {culprit.records[0].words}")
        else:
            told.append(f"No single record: these {len(culprit.records)} fail together only:")
            told += [f"  {record.words}" for record in culprit.records]
    if not report.culprits:
        told.append("No small set of records was found that fails without the others.")
    elif report.whole:
        told.append("Without these records, the rest of the batch does not fail in this way.")
    else:
        told.append("The rest of the batch still fails in this way: there are more such records.")
    if report.unreadable:
        told.append("A file that cannot be read row by row is named as a whole.")
    if report.other_failures:
        told.append("Trials that failed in another way were not counted:")
        told += [f"  {one}" for one in report.other_failures[:5]]
    told += [
        "",
        "Nothing was skipped or changed: the next start runs the same batch again. Let the code",
        "accept or filter the record, or correct it at its source, then start again.",
    ]
    return told


def _not_failing(report: BisectReport) -> list[str]:
    said = ["The batch does not fail on a fork with this code."]
    if report.sink == "noop":
        said += [
            "The trials computed all rows and wrote none. If the failure comes from the sink, they",
            "cannot show it. --bisect-sink calls a foreachBatch function as well; once.sql is then",
            "rolled back, once.delta and once.iceberg write nothing; everything else that the",
            "function does takes effect.",
        ]
    return said
