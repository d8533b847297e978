"""The Python API: one plain function a verb."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import floodmark
import samples
from floodmark.errors import WrongUse


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    return samples.write(tmp_path / "sales", samples.sales(8))


def test_open_reads_every_batch(sales: Path) -> None:
    found = floodmark.open(str(sales))
    assert isinstance(found, floodmark.Checkpoint)
    assert sorted(found.offsets) == list(range(8))
    assert found.sources_of(0)[0].offset == {"orders": {"0": 400, "1": 500}}


def test_a_path_object_will_do(sales: Path) -> None:
    assert floodmark.open(sales).latest_batch == 7  # type: ignore[arg-type]
    assert floodmark.inspect(sales).latest_batch == 7  # type: ignore[arg-type]
    assert len(floodmark.batches(sales)) == 8  # type: ignore[arg-type]
    assert floodmark.offsets(sales).batch == 6  # type: ignore[arg-type]
    assert floodmark.diff(sales, sales) == ()  # type: ignore[arg-type]
    assert len(list(floodmark.scan([sales]))) == 1  # type: ignore[list-item]


def test_offsets_by_batch_and_by_time(sales: Path) -> None:
    path = str(sales)
    assert floodmark.offsets(path).batch == 6
    assert floodmark.offsets(path, batch=2).sources[0].offset == {"orders": {"0": 416, "1": 518}}
    moment = datetime.fromtimestamp(samples.time_of(4) / 1000, timezone.utc)
    assert floodmark.offsets(path, at=moment).batch == 4
    assert floodmark.offsets(path, at=moment.isoformat()).batch == 4
    assert floodmark.offsets(path, at=moment.astimezone().replace(tzinfo=None)).batch == 4


def test_offsets_of_a_committed_batch_well_behind(tmp_path: Path) -> None:
    samples.write(tmp_path, samples.logs(range(600), range(590)))
    assert floodmark.offsets(str(tmp_path)).sources[0].offset == {"orders": {"0": 5112, "1": 5801}}


def test_files(tmp_path: Path) -> None:
    samples.write(tmp_path, samples.file_stream())
    assert [file.batch for file in floodmark.files(str(tmp_path))] == [0, 1, 1, None]


def test_diff_of_batches(sales: Path) -> None:
    found = floodmark.diff(sales, batches=(5, 6))  # type: ignore[arg-type]
    assert [item.where for item in found][-1] == "source 0 orders 1"
    with pytest.raises(floodmark.FloodmarkError, match="two checkpoints"):
        floodmark.diff(str(sales))


def test_scan_yields_as_it_finds(tmp_path: Path) -> None:
    for name in "abc":
        samples.write(tmp_path / name, samples.logs([0], [0]))
    found = floodmark.scan([str(tmp_path)])
    assert next(found).latest_batch == 0
    assert len(list(found)) == 2
    assert len(list(floodmark.scan(tmp_path))) == 3


def test_state_of_two_paths_is_compared(tmp_path: Path) -> None:
    tree = samples.logs([0], [0])
    one, two = (samples.write(tmp_path / name, tree) for name in "ab")
    with pytest.raises(floodmark.FloodmarkError, match="no state"):
        floodmark.read_state(one)  # type: ignore[arg-type]
    assert not floodmark.diff_state(one, two)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["a\0b", "a\ud800b"])
def test_a_path_that_no_file_can_have(path: str, tmp_path: Path) -> None:
    sales = str(samples.write(tmp_path / "sales", samples.logs([0], [0])))
    with pytest.raises(floodmark.FloodmarkError):
        floodmark.inspect(path)
    with pytest.raises(floodmark.FloodmarkError):
        floodmark.copy(path, sales)
    with pytest.raises(floodmark.FloodmarkError):
        floodmark.copy(sales, path)


def test_a_notebook_shows_a_checkpoint(tmp_path: Path) -> None:
    tree = samples.sales(3) | {"offsets/0": b"v1\n{<script>"}
    samples.write(tmp_path, tree)
    html = floodmark.open(str(tmp_path))._repr_html_()
    for part in (samples.QUERY_ID, "offsets/2", "batch 2", "commits/1", "stateStoreSave"):
        assert part in html
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_a_notebook_shows_wild_times_and_dstreams(tmp_path: Path) -> None:
    entry = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":9223372036854775807}\n0'
    samples.write(tmp_path / "a", samples.logs([0], [0]) | {"offsets/0": entry})
    assert "9,223,372" in floodmark.open(str(tmp_path / "a"))._repr_html_()
    samples.write(tmp_path / "b", {"checkpoint-1": b"x"})
    assert "DStreams" in floodmark.open(str(tmp_path / "b"))._repr_html_()


def test_importing_it_costs_nothing() -> None:
    code = (
        "import sys, floodmark; dir(floodmark);"
        "sys.exit(', '.join({'pyspark', 'fsspec', 'click', 'rich'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_public_names() -> None:
    folders = {path.stem for path in Path(floodmark.__file__).parent.iterdir()}
    for name in floodmark.__all__:
        assert getattr(floodmark, name) is not None
        # Importing a module of that name would put the module in the function's place.
        assert name not in folders
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        floodmark.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_offsets_say_where_the_stream_began(tmp_path: Path) -> None:
    sales = samples.write(tmp_path / "sales", samples.sales(3))
    assert floodmark.offsets(str(sales)).sources[0].began == {"orders": {"0": 392, "1": 491}}
    (sales / "sources/0/0").write_bytes(b"\0v1\n{")
    assert floodmark.offsets(str(sales)).sources[0].began is None
    (sales / "sources/0/0").unlink()
    assert floodmark.offsets(str(sales)).sources[0].began is None


@pytest.mark.parametrize(
    ("verb", "options", "words"),
    [
        ("diff", {"batches": "5..7"}, "Give a tuple (a whole number, a whole number) or None."),
        ("diff", {"batches": (1,)}, "Give a tuple"),
        ("doctor", {"read_data": "x"}, "Give True or False or a number or None."),
        ("batches", {"last": "x"}, "Give a whole number or None."),
        ("inspect", {"source_kinds": "x"}, "Give a dict or None."),
        ("inspect", {"storage": "x"}, "Give a dict or None."),
        ("compact", {"wait": []}, "Give a number or a text or None."),
        ("compact", {"execute": "yes"}, "Give True or False."),
        ("rewind", {"accept": 3}, "Give a text or a list of texts."),
    ],
)
def test_an_argument_of_a_wrong_type(verb: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(WrongUse) as caught:
        getattr(floodmark, verb)("cp", **options)
    assert f"{verb}: {next(iter(options))} is " in caught.value.what
    assert words in caught.value.do


def test_a_path_is_a_text_or_a_path() -> None:
    for wrong in (None, 3, b"x", ["x"]):
        with pytest.raises(WrongUse):
            floodmark.inspect(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'lats'"):
        floodmark.inspect("x", lats=3)  # type: ignore[call-arg]


def test_a_verb_is_the_same_each_time() -> None:
    assert floodmark.diff is floodmark.diff
