"""Sources that come, go and change places: `migrate` carries state and positions, exactly.

Spark runs the old code, then the new code on what `migrate` made; a batch query over what each
source should have given tells what is right.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from continuity_matrix import KEPT, run
from source_changes import (
    DELTA,
    FILES,
    KAFKA,
    SourceScenario,
    Stage,
    newest,
    run_source_scenario,
    source_scenarios,
    totals,
)

from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.errors import FloodmarkError

pytestmark = [pytest.mark.spark, pytest.mark.services]
EVERY = list(source_scenarios())
QUICK = [one for one in EVERY if one.quick]


@pytest.mark.parametrize("one", QUICK, ids=lambda one: one.name)
def test_state_and_positions_go_on(
    spark: Any, kafka: Any, one: SourceScenario, tmp_path: Path
) -> None:
    outcome = run_source_scenario(spark.newSession(), one, tmp_path / "run", kafka)
    assert outcome.carried, outcome.why


@pytest.mark.soak
@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_every_change_of_sources(
    spark: Any, kafka: Any, one: SourceScenario, tmp_path: Path
) -> None:
    outcome = run_source_scenario(spark.newSession(), one, tmp_path / "run", kafka)
    assert outcome.carried, outcome.why


# -- what a scenario does not show ------------------------------------------------------------

ONE = SourceScenario((FILES, FILES, FILES), "by hand", "a", "ab")
STATELESS = '{}.select("k", "v", F.lit(1).alias("n"))'
DISTINCT = '{}.dropDuplicates(["v"]).select("k", "v", F.lit(1).alias("n"))'
GO = Carrying(True, 0)


class Try:
    """Old code that has run over the first rows; more rows wait."""

    def __init__(
        self, spark: Any, folder: Path, one: SourceScenario, kafka: Any = None, **conf: str
    ) -> None:
        self.spark, self.one, self.conf = spark, one, conf
        self.stage = Stage(one, folder, kafka)
        self.old_app = self.stage.app("old_app.py", one.old, self.stage.old)
        self.app = self.stage.app("new_app.py", one.new, self.stage.new)
        self.stage.write(spark)
        self.kept = self.run(self.old_app, self.stage.old, True)

    def run(self, app: str, checkpoint: Path, noted: bool = False) -> list[tuple[int, Any]]:
        for key, value in self.conf.items():
            self.spark.conf.set(key, value)
        run(self.spark, app, checkpoint, noted=noted)
        return list(KEPT[app])

    def migrate(self, **options: Any) -> Any:
        return api.migrate(
            str(self.stage.old), str(self.stage.new), app=self.app, carrying=GO, **options
        )

    def finish(self) -> dict[str, tuple[int, int]]:
        self.kept += self.run(self.app, self.stage.new)
        return newest(self.kept)

    def rows(self, names: str) -> list[tuple[str, int, str]]:
        return [row for name in names for row in self.stage.feeds[name].rows]


def everything(kept: list[tuple[int, Any]]) -> list[int]:
    return sorted(int(v) for _, (_, v, _) in kept)


@pytest.mark.soak
def test_a_batch_in_flight_is_run_again_without_the_new_source(spark: Any, tmp_path: Path) -> None:
    held = Try(spark.newSession(), tmp_path, ONE)
    held.stage.write(spark)
    held.kept += held.run(held.old_app, held.stage.old)
    (held.stage.old / "commits" / "1").unlink()
    (held.stage.old / "commits" / ".1.crc").unlink(missing_ok=True)
    done = held.migrate()
    assert any("begins with the batch after it" in note for note in done.plan.notes)
    held.stage.write(spark)
    first = [row for batch, row in held.run(held.app, held.stage.new) if batch == 1]
    again = {k: (int(s), int(n)) for k, s, n in first}
    assert again == totals(spark, held.stage.feeds["a"].rows[:6])
    assert newest(KEPT[held.app]) == totals(spark, held.rows("ab"))


@pytest.mark.soak
def test_a_batch_in_flight_with_records_of_a_source_that_goes_is_refused(
    spark: Any, tmp_path: Path
) -> None:
    one = replace(ONE, old="ab", new="a")
    held = Try(spark.newSession(), tmp_path, one)
    held.stage.write(spark)
    held.kept += held.run(held.old_app, held.stage.old)
    (held.stage.old / "commits" / "1").unlink()
    with pytest.raises(FloodmarkError, match="batch 1 is in flight, and reads source 1"):
        held.migrate(accept=["dropped-source"])
    assert not held.stage.new.exists()
    done = held.migrate(accept=["dropped-source"], drop_in_flight=True)
    assert any("is dropped: 1 file of it not read yet" in note for note in done.plan.notes)
    rows = held.rows("a") + held.stage.feeds["b"].rows[:3]
    assert held.finish() == totals(spark, rows)


@pytest.mark.soak
def test_a_source_that_goes_is_accepted_by_name_with_what_it_had_not_read(
    spark: Any, kafka: Any, tmp_path: Path
) -> None:
    for kind, said in (
        (FILES, "2 files of it not read yet"),
        (KAFKA, "6 records of it not read yet"),
        (DELTA, "6 rows of its table not read yet, in 2 files"),
    ):
        one = SourceScenario((FILES, kind, FILES), "by hand", "ab", "a")
        held = Try(spark.newSession(), tmp_path / kind, one, kafka)
        held.stage.write(spark)
        held.stage.write(spark)
        with pytest.raises(FloodmarkError) as refused:
            held.migrate()
        assert said in str(refused.value)
        assert "--accept dropped-source" in str(refused.value)
        assert not held.stage.new.exists()


@pytest.mark.parametrize(
    "kind", [FILES, *(pytest.param(kind, marks=pytest.mark.soak) for kind in (KAFKA, DELTA))]
)
def test_latest_begins_with_what_comes(spark: Any, kafka: Any, kind: str, tmp_path: Path) -> None:
    one = SourceScenario((FILES, kind, FILES), "by hand", "a", "ab")
    held = Try(spark.newSession(), tmp_path, one, kafka)
    before = list(held.stage.feeds["b"].rows)
    held.migrate(start=["1=latest"])
    held.stage.write(spark)
    rows = [row for row in held.rows("ab") if row not in before]
    assert held.finish() == totals(spark, rows)
    held.stage.write(spark)
    rows = [row for row in held.rows("ab") if row not in before]
    assert held.finish() == totals(spark, rows)


@pytest.mark.soak
def test_a_query_without_state_goes_on_too(spark: Any, tmp_path: Path) -> None:
    one = replace(ONE, code=STATELESS)
    held = Try(spark.newSession(), tmp_path, one)
    held.stage.write(spark)
    held.migrate()
    held.kept += held.run(held.app, held.stage.new)
    assert everything(held.kept) == sorted(v for _, v, _ in held.rows("ab"))


@pytest.mark.soak
def test_deduplication_above_the_union_keeps_what_it_has_seen(spark: Any, tmp_path: Path) -> None:
    one = replace(ONE, code=DISTINCT)
    held = Try(spark.newSession(), tmp_path, one)
    seen = list(held.stage.feeds["a"].rows)
    held.stage.feeds["b"].write(spark, seen)  # the new source repeats what the old one gave
    held.migrate()
    held.kept += held.run(held.app, held.stage.new)
    assert everything(held.kept) == sorted({v for _, v, _ in held.rows("ab")})


@pytest.mark.soak
def test_a_compacted_list_of_files_goes_with_its_source(spark: Any, tmp_path: Path) -> None:
    compacting = {"spark.sql.streaming.fileSource.log.compactInterval": "2"}
    held = Try(spark.newSession(), tmp_path, replace(ONE, old="ab", new="cba"), **compacting)
    for _ in range(4):
        held.stage.write(spark)
        held.kept += held.run(held.old_app, held.stage.old)
    assert list((held.stage.old / "sources" / "0").glob("*.compact"))
    held.migrate()
    assert list((held.stage.new / "sources" / "2").glob("*.compact"))
    held.stage.write(spark)
    assert held.finish() == totals(spark, held.rows("abc"))


@pytest.mark.soak
def test_sources_that_nobody_can_tell_apart_are_refused_until_it_is_said(
    spark: Any, tmp_path: Path
) -> None:
    held = Try(spark.newSession(), tmp_path, ONE)
    twice = tmp_path / "twice.py"
    # The same folder, by a second readStream.
    second = held.stage.feeds["a"].code
    twice.write_text(Path(held.app).read_text().replace(held.stage.feeds["b"].code, second))
    held.app = str(twice)
    with pytest.raises(FloodmarkError, match="Sources 0 and 1 of the new code can be source 0"):
        held.migrate()
    held.migrate(start=["1=source:0", "0=latest"])


@pytest.mark.soak
def test_operators_that_would_change_their_sources_are_refused(spark: Any, tmp_path: Path) -> None:
    code = 'a.dropDuplicates(["v"]).unionByName(b.dropDuplicates(["v"])).groupBy("k").count()'
    crossed = 'b.dropDuplicates(["v"]).unionByName(a.dropDuplicates(["v"])).groupBy("k").count()'
    held = Stage(replace(ONE, old="ab", new="ab", code=code), tmp_path, None)
    held.write(spark)
    old_app = held.app("old_app.py", "ab", held.old)
    run(spark.newSession(), old_app, held.old, noted=True)
    app = Path(held.app("new_app.py", "ab", held.new))
    app.write_text(app.read_text().replace(code, crossed))
    with pytest.raises(FloodmarkError, match="Deduplicate that read source 1"):
        api.migrate(str(held.old), str(held.new), app=str(app), carrying=GO)
    assert not held.new.exists()
