"""The notebooks of examples/ run from their first cell to their last, and say what they should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def shown(cell: Any, kind: str = "text/html") -> str:
    """What the cell shows, in one text."""
    return "".join(
        output.data.get(kind, output.data.get("text/plain", ""))
        for output in cell.get("outputs", ())
        if "data" in output
    )


@pytest.fixture(scope="module")
def executed() -> list[Any]:
    notebook = nbformat.read(ROOT / "examples" / "checkpoint.ipynb", 4)
    NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": ROOT / "examples"}}
    ).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def cell(executed: list[Any], source: str) -> str:
    (found,) = [one for one in executed if one.source.endswith(source)]
    return shown(found)


@pytest.mark.filterwarnings("ignore")
def test_it_can_be_followed(executed: list[Any]) -> None:
    assert "Spark goes on with batch 3" in cell(executed, "\ncheckpoint")
    assert "<td" in cell(executed, "checkpoint.batches")
    assert "committed" in cell(executed, "checkpoint.batches")
    assert "value.sum" in cell(executed, "\nstate")
    assert "rewrite-state" in cell(executed, "\nchange")
    assert "no batch is repeated" in cell(executed, "change.plan.consequences]")
    assert "Done" in cell(executed, "change.apply()")
    assert cell(executed, "equals(by_customer(frame))") == "True"
    assert cell(executed, "Path(target).exists()") == "False"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_kept_without_its_output(path: Path) -> None:
    for one in nbformat.read(path, 4).cells:
        assert not one.get("outputs"), f"{path.name} has output: clear it"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_what_pandas_polars_and_duckdb_see_is_one(path: Path) -> None:
    text = path.read_text()
    for library in ("to_pandas", "polars", "duckdb"):
        assert library in text
