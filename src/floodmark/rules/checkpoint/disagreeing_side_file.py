"""Finds a file that changed after Hadoop wrote its checksums."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.checksums.sidefiles import side_file_size
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import main_file, side_file
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM115",
    "disagreeing-side-file",
    Severity.WARNING,
    finds="A file whose bytes do not match the checksums in its hidden `.NAME.crc`.",
    matters="The file was changed after Spark wrote it: by hand, by a copy without its side file, "
    "or by a failing disk.",
    restart="Spark does not check these checksums for logs and state, and uses the file as it "
    "is. Reads of SST files, `hadoop fs -cat` and spark.read do check them, and fail.",
    instead="If you changed the file on purpose, remove the side file. If not, restore the file "
    "from a backup.",
    repairable=True,
    mends=(Mend.SIDE_FILE,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    # Another rule reports a file that cannot be read at all.
    broken = evidence.faults.keys() | evidence.unusable
    tables = {
        table.path
        for snapshot, named in evidence.snapshots.items()
        if snapshot in broken
        for table in named
    }
    for path in sorted(evidence.disagreeing - broken - tables):
        yield RULE.finding(path, f"{path} does not match the checksums in {side_file(path)}.")
    for path, size in evidence.sizes.items():
        main = main_file(path)
        if main is None or main in evidence.disagreeing or main in broken:
            continue
        found = evidence.sizes.get(main, -1)
        # An empty file needs no side file, and neither does a store's own `.crc`.
        if found > 0 and size != side_file_size(found):
            yield RULE.finding(
                main, f"{main} has {found:,} bytes, but its side file {path} is for another length."
            )
