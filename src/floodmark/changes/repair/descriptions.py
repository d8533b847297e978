"""Repairs what entries and operator metadata say about the state."""

from __future__ import annotations

import json

from floodmark.changes.carry.rehome import is_operator_metadata, moved_operator_metadata
from floodmark.changes.repair.working_copy import SAME_QUERY, WorkingCopy
from floodmark.checkpoint.conf_keys import PROVIDER_CLASS, SHUFFLE_PARTITIONS, STATE_CODEC
from floodmark.checkpoint.layout import OFFSETS
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.text import compact_json
from floodmark.rules.mend import Mend


def schema_paths(work: WorkingCopy) -> bool:
    """Correct absolute paths that lead to the place from which the checkpoint was copied."""
    if not work.found(Mend.SCHEMA_PATHS):
        return False
    for path in work.evidence.sizes:
        if is_operator_metadata(path) and not path.rsplit("/", 1)[1].startswith("."):
            data = moved_operator_metadata(
                work.files.read(RelativePath(path)), work.evidence.places[0]
            )
            work.write(path, data, "the paths of its schemas lead to this place")
    return True


def partition_count(work: WorkingCopy) -> bool:
    """Add the number of partitions, which version 2 entries of a query's first run lack."""
    if not work.found(Mend.PARTITION_COUNT):
        return False
    checkpoint = work.checkpoint
    latest = checkpoint.latest_batch
    assert latest is not None
    count = max(operator.partitions for operator in checkpoint.state_operators)
    # With a batch in flight, Spark compares the count with that of the entry before.
    for batch in (latest - 1, latest):
        entry = checkpoint.offsets.get(batch)
        if entry is None or entry.metadata is None or SHUFFLE_PARTITIONS in entry.metadata.conf:
            continue
        why = f"pins the number of partitions that the state has: {count}"
        _say(work, batch, SHUFFLE_PARTITIONS, str(count), why)
    return True


def settings(work: WorkingCopy) -> bool:
    """Correct entries that disagree on a setting, if the state files show the right value."""
    if not any(item.repairable for item in work.found(Mend.SETTINGS)):
        return False
    for key in (STATE_CODEC, PROVIDER_CLASS):
        value = work.evidence.written_with(key)
        for batch, entry in work.checkpoint.offsets.items():
            said = entry.metadata.conf.get(key) if entry.metadata else None
            if None not in (value, said) and value != said:
                short = str(value).rpartition(".")[2]
                why = f"the state files are {short}'s, as other entries say"
                _say(work, batch, key, str(value), why)
    return True


def _say(work: WorkingCopy, batch: int, key: str, value: str, why: str) -> None:
    """Set one setting of an entry; the rest stays as Spark wrote it."""
    path = f"{OFFSETS}/{batch}"
    # An entry may have no source: then its second line is the last.
    head, line, *rest = work.files.read(RelativePath(path)).decode().split("\n", 2)
    fields = json.loads(line)
    fields.setdefault("conf", {})[key] = value
    work.write(path, "\n".join((head, compact_json(fields), *rest)).encode(), why)


def torn(work: WorkingCopy) -> bool:
    """Remove torn schemas and operator metadata that Spark writes again where they are missing."""
    found = [item.path for item in work.found(Mend.DESCRIPTION) if item.repairable]
    for path in found:
        work.remove(path, "it cannot be read: the next start writes it again")
    if found:
        work.risk(
            SAME_QUERY,
            f"{', '.join(found)}: the next start compares nothing and writes down what then runs. "
            "That has to be the query that wrote the state: a changed one would misread it.",
        )
    return bool(found)
