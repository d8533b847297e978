"""Rebuilds lost log entries from the entries that are left.

Spark plans batch N + 1 only when batch N is committed, and writes into its entry the watermark that
the commit had handed on. So the entry after a lost commit tells what the commit said.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any

from floodmark.checkpoint.commits import CommitEntry
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.offsets import OffsetEntry, render_offsets

_WATERMARK = "nextBatchWatermarkMs"
_IDS = "stateUniqueIds"
_TIME = re.compile(r'("batchTimestampMs":)(\d+)')


def derived_commit(checkpoint: Checkpoint, batch: int) -> bytes | None:
    """Return the bytes of commits/<batch> for a finished batch, or None if they cannot be known."""
    planned, after = checkpoint.offsets.get(batch), checkpoint.offsets.get(batch + 1)
    if planned is None:
        return None
    like = _nearest(checkpoint, batch)
    ids = _unique_ids(checkpoint, batch)
    if ids is None:
        return None
    fields = _fields(like)
    if _WATERMARK in fields:
        fields[_WATERMARK] = _watermark(after or planned)
    if ids:
        fields[_IDS] = ids
    version = like.version if like else 2 if ids else 1
    return f"v{version}\n{json.dumps(fields, separators=(',', ':'))}".encode()


def _nearest(checkpoint: Checkpoint, batch: int) -> CommitEntry | None:
    near = min(checkpoint.commits, key=lambda other: abs(other - batch), default=None)
    return None if near is None else checkpoint.commits[near]


def _fields(like: CommitEntry | None) -> dict[str, Any]:
    if like is None:
        return {_WATERMARK: 0}
    body = like.text.split("\n", 2)[1:2]
    fields: dict[str, Any] = json.loads(body[0]) if body and body[0].strip() else {}
    return fields


def _watermark(entry: OffsetEntry) -> int:
    # For the newest batch only its own watermark is known. The next one is never smaller.
    return entry.metadata.batch_watermark_ms if entry.metadata else 0


def _unique_ids(checkpoint: Checkpoint, batch: int) -> dict[str, list[list[str]]] | None:
    """Return the unique ids of the batch's state files; {} if the names have no ids.

    None means that a store has no file of that version, or several.
    """
    found: dict[tuple[int, int, str], set[str | None]] = defaultdict(set)
    for file in checkpoint.state_files:
        if file.version == batch + 1:
            found[file.operator, file.partition, file.store].add(file.unique_id)
    if not any(unique_id for ids in found.values() for unique_id in ids):
        return {}
    if any(len(ids) != 1 or None in ids for ids in found.values()):
        return None
    ids: dict[str, list[list[str]]] = {}
    for operator in checkpoint.state_operators:
        mine: list[list[str]] = []
        for partition in range(operator.partitions):
            each = [
                found.get((operator.operator, partition, store), set()) for store in operator.stores
            ]
            if not all(len(one) == 1 for one in each):
                return None
            mine.append([str(next(iter(one))) for one in each])
        ids[str(operator.operator)] = mine
    return ids


def stand_in(checkpoint: Checkpoint, batch: int) -> bytes | None:
    """Return bytes that can stand for offsets/<batch>, if the batch after it is logged.

    Spark opens this entry and checks only that it is not later than the one after it.
    """
    after = checkpoint.offsets.get(batch + 1)
    if after is None:
        return None
    data = render_offsets(after)
    head, _, rest = data.decode().partition("\n")
    text = _TIME.sub(lambda found: f"{found[1]}{max(int(found[2]) - 1, 0)}", rest, count=1)
    return f"{head}\n{text}".encode()
