"""Damaged state, mended without Spark: what is left is the state of the batch it goes on from."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path

import pytest

import samples
from carried import GO
from floodmark import api
from rules.examples import golden
from rules.test_mutations import KINDS, damaged, kind_of

CHECKPOINTS = [
    "3.5/sales-hdfs-snapshot",
    "4.0/sales-rocksdb",
    "4.1/sales-changelog",
    "4.1/sales-format-2",
]
STATE = ("delta", "snapshot", "zip", "changelog", "sst")


def newest_of_each_kind(tree: dict[str, bytes]) -> list[str]:
    by_kind: dict[str, list[str]] = {}
    for path in sorted(tree, key=lambda path: (len(path), path)):
        if kind_of(path) in STATE:
            by_kind.setdefault(kind_of(path), []).append(path)
    return [path for paths in by_kind.values() for path in {paths[0], paths[-1]}]


def rows(place: Path, batch: int) -> list[str]:
    return sorted(map(repr, api.state(str(place), batch=batch).rows()))


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_what_is_left_is_the_state_of_that_batch(name: str, tmp_path: Path) -> None:
    tree = golden(name)
    whole = samples.write(tmp_path / "whole", tree)
    place = tmp_path / "cp"
    mended = 0
    for path in newest_of_each_kind(tree):
        for how in KINDS:
            after = damaged(tree, path, how, random.Random(f"{path} {how}"))
            if after == tree[path]:
                continue
            shutil.rmtree(place, ignore_errors=True)
            samples.write(place, tree)
            (place / path).unlink()
            if after is not None:
                (place / path).write_bytes(after)
            found = api.doctor(str(place), 1.0)
            if not found or not all(item.repairable for item in found):
                continue
            api.repair(str(place), accept=["repeats"], read_data=True, carrying=GO)
            assert api.doctor(str(place), 1.0) == (), (path, how)
            batch = api.inspect(str(place)).committed_batch
            assert batch is not None
            assert rows(place, batch) == rows(whole, batch), (path, how)
            mended += 1
    print(f"\n{name}: {mended} mended")
    assert mended >= 4


def test_notes_of_starts_whose_batches_run_again_go_with_them(tmp_path: Path) -> None:
    """As in a rewind: else `check` would compare new code with code that made no state here."""
    tree = golden("4.1/sales-changelog")
    newest = max(int(path[8:]) for path in tree if path.startswith("commits/"))
    notes = {
        f"_floodmark/starts/{number}.json": json.dumps({"next_batch": first}).encode()
        for number, first in ((1, 0), (2, newest))
    }
    place = samples.write(tmp_path / "cp", {**tree, **notes})
    for path in tree:
        if re.fullmatch(rf"state/0/\d+/{newest + 1}\.\w+", path):
            (place / path).write_bytes(b"")
    change = api.repair(str(place), accept=["repeats"], read_data=True, carrying=GO)
    assert change.executed
    assert api.inspect(str(place)).committed_batch == newest - 1
    assert [path.name for path in place.glob("_floodmark/starts/*")] == ["1.json"]
