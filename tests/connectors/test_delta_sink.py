"""What a Delta table remembers of queries: a log that does not tell it is said to be so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import samples
from floodmark.connectors.delta.sink import remembered
from floodmark.errors import MalformedFile
from floodmark.storage.files import open_files


def table(folder: Path, commits: dict[int, list[Any]]) -> Path:
    return samples.write(
        folder,
        {
            f"_delta_log/{version:020d}.json": "\n".join(map(json.dumps, actions)).encode()
            for version, actions in commits.items()
        },
    )


def txn(batch: Any, query: str = "a") -> dict[str, Any]:
    return {"txn": {"appId": query, "version": batch}}


def test_the_newest_batch_of_each_query(tmp_path: Path) -> None:
    place = table(tmp_path, {0: [txn(3), "x"], 1: [txn(9, "b")], 2: [txn(4)]})
    assert remembered(open_files(str(place))) == {"a": 4, "b": 9}


@pytest.mark.parametrize("batch", [None, "7", True, {}])
def test_a_batch_that_is_no_number(batch: Any, tmp_path: Path) -> None:
    files = open_files(str(table(tmp_path, {0: [txn(batch)]})))
    with pytest.raises(MalformedFile, match="is no number"):
        remembered(files)


def test_a_checkpoint_of_the_log_may_be_a_strangers(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    place = table(tmp_path, {0: [txn(3)]})
    rows = pyarrow.table({"txn": pyarrow.array([{"appId": "a"}])})
    parquet.write_table(rows, place / "_delta_log" / f"{0:020d}.checkpoint.parquet")
    with pytest.raises(MalformedFile, match="is no number"):
        remembered(open_files(str(place)))


def test_a_log_whose_beginning_is_gone_does_not_say_that_there_is_nothing(tmp_path: Path) -> None:
    """Delta's newer checkpoints may be JSON, which is not read here."""
    files = open_files(str(table(tmp_path, {11: [{"commitInfo": {}}]})))
    with pytest.raises(MalformedFile, match="before version 11 are not known"):
        remembered(files)
