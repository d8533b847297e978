"""Plans `compact`: removes files that no start and no rewind needs.

Spark removes old files only while a query runs, and leaves some of them for ever. This removes
what Spark's own retention would remove, and files that nothing names.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from floodmark.changes.carry.checkpoint_files import with_checksums
from floodmark.changes.carry.origin import Origin, unnamed_sink
from floodmark.changes.carry.rehome import is_operator_metadata
from floodmark.changes.carry.sink_log import SinkPlace
from floodmark.changes.plan import Plan
from floodmark.changes.plan.steps import SINK, Step, delete
from floodmark.checkpoint.conf_keys import RETAINED_BATCHES
from floodmark.checkpoint.layout import (
    CHECKSUM,
    COMMITS,
    NOTES,
    OFFSETS,
    SOURCES,
    StateFile,
    batch_id,
    is_temporary,
    main_file,
    names_in,
    side_file,
    source_ids,
)
from floodmark.checkpoint.state_chain import StateIndex, StoreChain
from floodmark.checkpoint.text import several
from floodmark.checkpoint.views.position import refuse_lost_offsets
from floodmark.connectors.files.file_log import COMPACT, SINK_LOG, log_id
from floodmark.connectors.registry import about
from floodmark.errors import NoAnswer, WrongUse
from floodmark.statestore.manifests import StoredManifests
from floodmark.storage.files import Files

DEFAULT_RETAINED = 100
_COMPACTIONS_KEPT = 2


def retained(asked: int | None, note: Mapping[str, Any] | None) -> int:
    """Return how many batches stay: the option, the last start's setting, or Spark's default."""
    if asked is not None:
        if asked < 1:
            raise WrongUse(
                f"--keep {asked}: at least the newest batch has to stay",
                "The query continues from it.",
                "Give the number of batches that should stay, 1 or more.",
            )
        return asked
    conf = note.get("conf") if note else None
    text = str(conf.get(RETAINED_BATCHES, "")) if isinstance(conf, dict) else ""
    return int(text) if text.isdecimal() and 0 < len(text) < 10 else DEFAULT_RETAINED


def plan_compact(origin: Origin, keep: int, sink: SinkPlace | None = None) -> Plan:
    refuse_lost_offsets(origin.checkpoint)
    if origin.checkpoint.latest_batch is None:
        raise NoAnswer(
            f"{origin.location}: no batch was planned yet, so there is nothing to remove",
            "Only what old batches have left is superfluous.",
            "Leave it as it is.",
        )
    oldest = origin.checkpoint.latest_batch - keep
    gone = {
        **_old_entries(origin, oldest),
        **_old_state(origin, oldest),
        **_superseded(origin),
        **_leftovers(origin),
    }
    steps: list[Step] = [
        delete(name, why)
        for path, why in gone.items()
        for name in with_checksums(path, origin.sizes)
    ]
    steps += _superseded_in_sink(sink[1]) if sink else []
    unique = {(step.place, step.path): step for step in steps}
    size = sum(origin.sizes.get(step.path, 0) for step in unique.values() if step.place != SINK)
    return Plan(
        "compact",
        (
            f"Remove {several(len(unique), 'file')} ({size:,} bytes)"
            if unique
            else "Nothing to remove"
        )
        + f": batches {max(oldest, 0)} and later stay",
        origin.location,
        origin.location,
        tuple(unique.values()),
        origin.preconditions,
        origin.standing.digest,
        origin.standing.words,
        max(*origin.checkpoint.offset_ids, *origin.checkpoint.commit_ids, 0) + 1,
        {"keep": keep, "sink": sink[0] if sink else None},
        (
            *(unnamed_sink(origin) if sink is None else ()),
            *([_kept(origin.location)] if unique else []),
        ),
        sink=sink[0] if sink and any(step.place == SINK for step in unique.values()) else None,
    )


def _kept(location: str) -> str:
    command = f"floodmark forget {shlex.quote(location)}"
    return f"The files are kept until `{command}`, which frees their space."


def _old_entries(origin: Origin, oldest: int) -> dict[str, str]:
    """Return old log entries, as in Spark's own purge: below the newest batch minus the setting."""
    checkpoint = origin.checkpoint
    newest = {checkpoint.latest_batch, checkpoint.committed_batch}
    # A start opens the entry before the newest one, whatever the setting says.
    newest |= {checkpoint.offset_ids[-2]} if len(checkpoint.offset_ids) > 1 else set()
    why = f"older than batch {oldest}"
    return {
        f"{log}/{batch}": why
        for log, ids in ((COMMITS, checkpoint.commit_ids), (OFFSETS, checkpoint.offset_ids))
        for batch in ids
        if batch < oldest and batch not in newest
    }


def _old_state(origin: Origin, oldest: int) -> dict[str, str]:
    checkpoint = origin.checkpoint
    if not checkpoint.state_operators:
        return {}
    kept = [batch for batch in checkpoint.commit_ids if batch >= oldest] or [
        batch for batch in (checkpoint.committed_batch,) if batch is not None
    ]
    if not kept:
        return {}
    stores: dict[str, list[StateFile]] = defaultdict(list)
    for file in checkpoint.state_files:
        stores[file.path.rsplit("/", 1)[0]].append(file)
    gone: dict[str, str] = {}
    for need in _whole(origin, kept):
        base = need.files[0]
        files = stores.get(need.folder, [])
        old = [file for file in files if file.version < base.version]
        if base.kind in ("snapshot", "zip"):
            gone |= {
                file.path: f"every batch that stays can start from {base.path} or later"
                for file in old
            }
        left = [file for file in files if file.path not in gone]
        gone |= _unnamed_tables(origin, need.folder, left)
    return gone


def _whole(origin: Origin, kept: list[int]) -> Iterator[StoreChain]:
    """Return what the oldest batch that stays needs; the newest batch's state must be complete.

    An incomplete checkpoint may need files that look superfluous.
    """
    manifests = StoredManifests(origin.read)
    index = StateIndex(origin.checkpoint, lineage=manifests.lineage)
    index.required(kept[-1] + 1, manifests.tables)
    for batch in kept:
        chains = index.chains(batch + 1)
        # If the state of some batches is already gone, a later batch is the oldest to go back to.
        if not any(chain.missing or not chain.files for chain in chains):
            return iter(chains)
    return iter(())


def _unnamed_tables(origin: Origin, folder: str, files: list[StateFile]) -> dict[str, str]:
    """Return SSTs and logs that no snapshot names."""
    prefixes = (f"{folder}/SSTs/", f"{folder}/logs/")
    there = [
        path
        for path in origin.sizes
        if path.startswith(prefixes) and not path.rsplit("/", 1)[1].startswith(".")
    ]
    if not there:
        return {}
    named = set()
    for file in files:
        if file.kind == "zip" and file.size:
            named |= {table.path for table in StoredManifests(origin.read).tables(file)}
    return {path: "no snapshot names it" for path in there if path not in named}


def _superseded(origin: Origin) -> dict[str, str]:
    """Return file source entries that a compaction contains, and unused operator metadata."""
    checkpoint = origin.checkpoint
    gone: dict[str, str] = {}
    lists = {source.id for source in checkpoint.sources if about(source).lists_files}
    for source in source_ids(checkpoint.files):
        if source in lists:
            folder = f"{SOURCES}/{source}"
            gone |= _compacted(folder, names_in(checkpoint.files, folder))
    first = min(checkpoint.commit_ids, default=0)
    described: dict[str, list[int]] = defaultdict(list)
    for path in origin.sizes:
        number = batch_id(path.rsplit("/", 1)[-1])
        if is_operator_metadata(path) and number is not None and number <= first:
            described[path.rsplit("/", 1)[0]].append(number)
    for folder, numbers in described.items():
        for number in sorted(numbers)[:-1]:
            gone[f"{folder}/{number}"] = "a later one holds for all batches that stay"
    return gone


def _compacted(folder: str, names: tuple[str, ...]) -> dict[str, str]:
    ids = {name: number for name in names if (number := log_id(name)) is not None}
    compactions = sorted(number for name, number in ids.items() if name.endswith(COMPACT))
    if not compactions:
        return {}
    # Two stay, as Spark learns the log's interval from their distance.
    first = compactions[-_COMPACTIONS_KEPT:][0]
    newest = compactions[-1]
    return {
        f"{folder}/{name}": f"{newest}{COMPACT} holds it"
        for name, number in ids.items()
        if number < (first if name.endswith(COMPACT) else newest)
    }


def _superseded_in_sink(sink: Files) -> list[Step]:
    names = sink.level(SINK_LOG).files
    return [
        delete(each, why, SINK)
        for path, why in _compacted(SINK_LOG, names).items()
        for each in (path, side_file(path))
        if each.rsplit("/", 1)[1] in names
    ]


def _leftovers(origin: Origin) -> dict[str, str]:
    gone = {}
    for path in origin.sizes:
        if path.startswith(f"{NOTES}/"):
            continue
        main = main_file(path) or (path.removesuffix(CHECKSUM) if path.endswith(CHECKSUM) else None)
        if is_temporary(path.rsplit("/", 1)[-1]):
            gone[path] = "left over by a write that was stopped"
        elif main is not None and main not in origin.sizes:
            gone[path] = "a checksum whose file is gone"
    return gone
