"""What `migrate` cannot account for column by column is refused; the rest goes on rightly.

Spark runs the old code over half of the input and the new code over the rest; the new code over
all of it tells what is right. A refusal has to come before anything is written.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from continuity_matrix import run, settings, write_app, write_half
from scenarios import Scenario

from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.engine.code.outline import described
from floodmark.engine.code.query import read_query
from floodmark.engine.pipelines.application import load_application
from floodmark.engine.start.notes import note_of
from floodmark.errors import FloodmarkError
from floodmark.redaction import Redaction

pytestmark = pytest.mark.spark

GO = Carrying(True, 0)
TIMED = 'events.withWatermark("at", "10 minutes")'
GROUPED = 'events.groupBy("k").agg({0})'
SWAPPED = (
    GROUPED.format('F.sum("v").alias("x"), F.sum("id").alias("y")'),
    GROUPED.format('F.sum("id").alias("x"), F.sum("v").alias("y")'),
)


def sums(numbers: list[int]) -> str:
    return GROUPED.format(f'*[F.sum(F.col("v") + i).alias(f"s{{i}}") for i in {numbers}]')


def windows(length: str, more: str = "") -> str:
    return f'{TIMED}.groupBy(F.window("at", {length})).agg(F.count("*").alias("n"){more})'


def session(gap: str) -> str:
    return f'{TIMED}.groupBy(F.session_window("at", "{gap}"), "k").agg(F.count("*").alias("n"))'


class Moved:
    """An old checkpoint after half of the input, and the new code."""

    def __init__(self, spark: Any, folder: Path, old: str, new: str, noted: bool = True) -> None:
        self.spark, self.folder = spark, folder
        mode = "append" if "session" in old else "update"
        self.one = Scenario("aggregation", "not accounted for", old, new, mode=mode)
        self.source, self.old, self.new = folder / "in", folder / "old", folder / "new"
        self.old_app = write_app(folder / "old_app.py", old, self.one, self.source, self.old)
        self.app = write_app(folder / "app.py", new, self.one, self.source, self.new)
        write_half(self.source, 1)
        with settings(spark, self.one):
            run(spark, self.old_app, self.old, noted=noted)

    def migrate(self, **options: Any) -> Any:
        with settings(self.spark, self.one):
            return api.migrate(str(self.old), str(self.new), app=self.app, carrying=GO, **options)

    def goes_on_rightly(self) -> bool:
        write_half(self.source, 2)
        with settings(self.spark, self.one):
            found = run(self.spark, self.app, self.new)
            return found == run(self.spark, self.app, self.folder / "from-the-start")

    def note_a_failed_start(self) -> None:
        """The new code was started, and has committed nothing."""
        writer = load_application(self.app).pipelines[0](self.spark, None)
        redaction = Redaction.fresh()
        drawn = described(self.spark, read_query(writer), redaction=redaction)
        note = note_of(drawn, self.app, 2, redaction)
        (self.old / "_floodmark/starts/2.json").write_bytes(note)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(sums([*range(27)]), sums([*range(25), 26, 25]), id="27-sums-two-swapped"),
        pytest.param(sums([*range(27)]), sums([*range(26)]), id="27-sums-one-removed"),
    ],
)
def test_columns_go_where_they_belong(spark: Any, old: str, new: str, tmp_path: Path) -> None:
    moved = Moved(spark, tmp_path, old, new)
    moved.migrate()
    assert moved.goes_on_rightly()


def test_a_failed_start_is_not_the_old_code(spark: Any, tmp_path: Path) -> None:
    moved = Moved(spark, tmp_path, *SWAPPED)
    moved.note_a_failed_start()
    moved.migrate()
    assert moved.goes_on_rightly()


REFUSED = {
    "input": (
        'events.withColumn("x", F.col("v")).groupBy("k").agg(F.sum("x"))',
        'events.withColumn("x", F.col("v") * 100).groupBy("k").agg(F.sum("x"), F.count("*"))',
    ),
    "key": (
        'events.withColumn("g", F.col("k")).groupBy("g").agg(F.sum("v"))',
        'events.withColumn("g", F.upper("k")).groupBy("g").agg(F.sum("v"), F.count("*"))',
    ),
    "length of a window": (windows('"10 minutes"'), windows('"20 minutes"')),
    "slide of a window": (
        windows('"10 minutes", "5 minutes"'),
        windows('"10 minutes", "2 minutes"', ', F.sum("v")'),
    ),
    "gap of a session": (session("10 seconds"), session("200 seconds")),
    "columns beside a rare function": (
        GROUPED.format('F.regr_count("v", "w"), F.sum("v"), F.sum("id")'),
        GROUPED.format('F.regr_count("v", "w"), F.sum("id"), F.sum("v")'),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_means_another_is_refused(spark: Any, what: str, tmp_path: Path) -> None:
    moved = Moved(spark, tmp_path, *REFUSED[what])
    with pytest.raises(FloodmarkError):
        moved.migrate()
    assert not moved.new.exists()


def test_without_a_note_two_sums_are_not_told_apart(spark: Any, tmp_path: Path) -> None:
    moved = Moved(spark, tmp_path, *SWAPPED, noted=False)
    with pytest.raises(FloodmarkError):
        moved.migrate()
    assert not moved.new.exists()


def test_a_migrated_checkpoint_knows_what_it_was_made_for(spark: Any, tmp_path: Path) -> None:
    """`check` has something to compare with, though no query was started on it yet."""
    moved = Moved(
        spark, tmp_path, GROUPED.format('F.sum("v")'), GROUPED.format('F.sum("v"), F.count("*")')
    )
    moved.migrate()
    assert api.check(str(moved.new), moved.app).verdict.value in ("same", "compatible")
    text = Path(moved.app).read_text()
    other = moved.folder / "other.py"
    other.write_text(text.replace('groupBy("k")', 'groupBy(F.upper("k"))'))
    assert api.check(str(moved.new), str(other)).verdict.value not in ("same", "compatible")
    shutil.rmtree(moved.new)
