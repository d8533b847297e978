"""Every file × {missing, empty, cut, one bit flipped, another's}: found, or why not.

`pytest tests/rules/test_mutations.py -s` prints found of tried, and what was not found with the
reason: changes that do no harm, and changes that Spark cannot see either. Two that have
Hadoop's checksums beside their files are tried once more without, as on an object store.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from floodmark.checkpoint.checksums.sidefiles import agrees
from floodmark.checkpoint.layout import main_file
from floodmark.diagnosis.gather import gather
from floodmark.errors import FloodmarkError
from floodmark.state.files.compression import LZ4_MAGIC
from floodmark.statestore.open import open_state
from floodmark.storage.load import load
from rules.examples import Tree, diagnose, golden, home
from samples import HeldFiles

CHECKPOINTS = [
    "3.5/files",
    "3.5/in-flight-state",
    "3.5/sales-hdfs",
    "3.5/sales-hdfs-snapshot",
    "4.0/join",
    "4.0/sales-rocksdb",
    "4.0/transform-with-state",
    "4.1/sales-changelog",
    "4.1/sales-format-2",
    "4.1/sales-hdfs",
]
BARE = ["3.5/sales-hdfs", "4.1/sales-hdfs"]
KINDS = ("missing", "empty", "cut", "flipped", "another's")


def kind_of(path: str) -> str:
    """Files that play the same part: `state/*/*/*.delta`."""
    name = path.rsplit("/", 1)[-1]
    if name.startswith("."):
        return "side file"
    if path.startswith("state/"):
        if name.endswith(".crc"):
            return "Spark's checksum"
        if "_stateSchema" in path or name == "schema":
            return "schema"
        if "_metadata" in path:
            return "operator metadata"
        return name.rsplit(".", 1)[-1]
    return path.split("/", 1)[0]


def damaged(tree: Tree, path: str, how: str, chance: random.Random) -> bytes | None:
    """The bytes after the damage; None for no file, the same where there is no such damage."""
    data = tree[path]
    if how == "missing":
        return None
    if how == "empty":
        return b""
    if how == "cut":
        return data[: chance.randrange(1, len(data))] if len(data) > 1 else data
    if how == "flipped" and data:
        at = chance.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
    others = [other for other in tree if other != path and kind_of(other) == kind_of(path)]
    return tree[chance.choice(others)] if others else data


def harmless(tree: Tree, changed: Tree, path: str, how: str) -> str | None:
    """Why a change that was not found is none that could be."""
    after = changed.get(path)
    kind = kind_of(path)
    said = kind in ("offsets", "commits", "metadata", "sources", "schema", "operator metadata")
    state = kind in ("delta", "zip", "changelog", "snapshot", "sst")
    if kind == "side file":
        if after is None:
            return "a side file that is gone: Hadoop then checks nothing"
        main = main_file(path)
        return "a side file that still agrees" if main and agrees(after, tree[main]) else None
    if path in superseded(tree):
        return "an entry that a later compaction holds: Spark does not read it"
    if kind == "Spark's checksum" and how in ("missing", "flipped"):
        return "a checksum that is gone, or a bit in who wrote it: Spark goes on"
    if how == "missing":
        return missing_is_harmless(tree, path, state)
    if said and how in ("flipped", "another's", "cut"):
        return "text that still says something: Spark cannot see it either"
    if state and how == "another's":
        return "a whole state file in another's place: Spark cannot see it either"
    if state and how == "flipped":
        if rows_of(changed) == rows_of(tree):
            return "a bit that is not read: a zip's clock, what follows the last record"
        if kind in ("delta", "snapshot", "changelog") and not has_checksum(tree, path):
            return "a codec without checksums, and none beside the file: Spark cannot see it either"
    return None


def has_checksum(tree: Tree, path: str) -> bool:
    folder, _, name = path.rpartition("/")
    beside = f"{folder}/.{name}.crc" in tree or f"{path}.crc" in tree
    return beside or tree[path].startswith(LZ4_MAGIC)


def rows_of(tree: Tree) -> list[object]:
    """All that can be read of the state after every batch: its rows, or why there are none."""
    files = HeldFiles(tree)
    checkpoint = load(files)
    found: list[object] = []
    for operator in checkpoint.state_operators:
        for batch in checkpoint.commit_ids:
            try:
                stores = open_state(files, checkpoint, operator.operator, batch=batch).stores
                found += [
                    open_state(files, checkpoint, operator.operator, store, batch).rows()
                    for store in stores
                ]
            except FloodmarkError as error:
                found.append(error.what)
    return found


def missing_is_harmless(tree: Tree, path: str, state: bool) -> str | None:
    log, _, name = path.partition("/")
    if log in ("offsets", "commits"):
        batches = [int(p.split("/")[1]) for p in tree if p.startswith(log) and name_is_batch(p)]
        if int(name) == min(batches):
            return "the oldest entry of a log: Spark removes it itself"
        if int(name) == max(batches) and (log == "commits" or f"commits/{name}" not in tree):
            return "the newest entry: its batch is planned or run again, as after a crash"
    if state and not_needed(tree, path):
        return "state that the next start does not load"
    if path.endswith((".snapshot", ".zip")):
        return "a snapshot whose changes since the one before it are all there"
    return None


def name_is_batch(path: str) -> bool:
    return path.split("/")[1].isdecimal()


def superseded(tree: Tree) -> set[str]:
    compacted = [int(p.split("/")[2].split(".")[0]) for p in tree if p.endswith(".compact")]
    return {
        path
        for path in tree
        if path.startswith("sources/0/")
        and path.split("/")[2].isdecimal()
        and int(path.split("/")[2]) < max(compacted, default=-1)
    }


def not_needed(tree: Tree, path: str) -> bool:
    evidence = gather(HeldFiles(tree))
    tables = {
        table.path
        for snapshot, named in evidence.snapshots.items()
        if snapshot in evidence.needed
        for table in named
    }
    return path not in evidence.needed and path not in tables


@pytest.mark.parametrize(
    ("name", "bare"), [(name, False) for name in CHECKPOINTS] + [(name, True) for name in BARE]
)
def test_damage_is_found(name, bare):
    tree = golden(name)
    if bare:
        tree = {path: data for path, data in tree.items() if kind_of(path) != "side file"}
    healthy = {(item.rule, item.path) for item in diagnose(tree, home(name), share=1.0)}
    tried: Counter[tuple[str, str]] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    reasons: Counter[str] = Counter()
    unexplained: list[str] = []
    for path in tree:
        for how in KINDS:
            chance = random.Random(f"{name} {path} {how}")
            after = damaged(tree, path, how, chance)
            if after == tree[path]:
                continue
            changed = {other: data for other, data in tree.items() if other != path}
            if after is not None:
                changed[path] = after
            findings = {(item.rule, item.path) for item in diagnose(changed, home(name), share=1.0)}
            what = (kind_of(path), how)
            tried[what] += 1
            if findings - healthy:
                found[what] += 1
                continue
            reason = harmless(tree, changed, path, how)
            if reason is None:
                unexplained.append(f"{path} {how}")
            else:
                reasons[f"{kind_of(path)} {how}: {reason}"] += 1
    print(f"\n{name}{' bare' * bare}: found {sum(found.values())} of {sum(tried.values())} tried")
    for reason, count in sorted(reasons.items()):
        print(f"  {count:3}  {reason}")
    assert unexplained == []
