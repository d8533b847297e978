"""Finds a state file that Spark's own checksum does not fit."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import CHECKSUM, STATE
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM121",
    "disagreeing-checksum",
    Severity.ERROR,
    finds="A state file whose length or CRC-32C differs from the `<file>.crc` that Spark 4.1 and "
    "later write beside it, or such a .crc that cannot be read. Lengths are always compared, "
    "content with --read-data.",
    matters="The state file or its checksum was changed after Spark wrote them.",
    restart="Loading it fails: CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED.",
    instead="Restore the file from a backup. If you changed it on purpose, remove its .crc: "
    "without one Spark only warns.",
    mends=(Mend.CHECKSUM, Mend.STATE, Mend.GO_BACK),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for path, how in evidence.checksums.items():
        needed = path in evidence.needed
        yield RULE.finding(
            path,
            f"{path} does not match {path}.crc: {how}.",
            severity=Severity.ERROR if needed else Severity.WARNING,
            repairable=not needed or evidence.state_is_to_be_had,
        )
    for path, fault in evidence.faults.items():
        if path.startswith(f"{STATE}/") and path.endswith(CHECKSUM):
            yield RULE.finding(path, f"{path} cannot be read: {fault.reason}.", repairable=True)
