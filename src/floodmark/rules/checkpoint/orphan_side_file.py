"""Finds a hidden checksum file without its file: it blocks a later write."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence, log_entry
from floodmark.checkpoint.layout import METADATA, SOURCES, main_file
from floodmark.connectors.files.file_log import log_id
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM114",
    "orphan-side-file",
    Severity.ERROR,
    finds="A hidden `.N.crc` in offsets/, commits/ or a file source's list without its file N, "
    "where Spark has not written N yet; or `.metadata.crc` without `metadata`.",
    matters="On a local disk, Hadoop moves the side file together with its file and does not "
    "overwrite an existing one.",
    restart="The write of N fails, as 'Multiple streaming queries are concurrently using …', "
    "though there is only one.",
    instead="Remove the side file.",
    repairable=True,
    mends=(Mend.LONE_SIDE_FILE,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    newest = {
        "offsets": -1 if checkpoint.latest_batch is None else checkpoint.latest_batch,
        "commits": -1 if checkpoint.committed_batch is None else checkpoint.committed_batch,
        **{f"{SOURCES}/{source}": entry for source, entry in evidence.seen_files.items()},
    }
    for path in evidence.sizes:
        main = main_file(path)
        if main is None or main in evidence.sizes:
            continue
        entry = log_entry(main) or _list_entry(main)
        if main == METADATA or (entry is not None and entry[1] > newest.get(entry[0], entry[1])):
            yield RULE.finding(path, f"{path} is left over: {main} does not exist.")


def _list_entry(path: str) -> tuple[str, int] | None:
    """Return (`sources/<id>`, entry) of a path in a source's folder."""
    folder, _, name = path.rpartition("/")
    entry = log_id(name) if folder.startswith(f"{SOURCES}/") else None
    return None if entry is None else (folder, entry)
