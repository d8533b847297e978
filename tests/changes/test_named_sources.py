"""`convert --name`: the log, the folders and the settings of a checkpoint with named sources."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import floodmark
from carried import GO
from floodmark import api
from floodmark.changes.carry.rehome import renamed_schema_log
from floodmark.checkpoint.offsets import parse_offsets
from floodmark.cli.main import run
from floodmark.errors import FloodmarkError, NoAnswer, NotCarried, WrongUse

GOLDEN = Path(__file__).parents[1] / "golden"
EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
NAMES = {"0": "web", "1": "shop"}


@pytest.fixture
def cp(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "4.3" / "union" / "checkpoint", tmp_path / "cp"))


def entries(checkpoint: Path) -> dict[int, Any]:
    found = {
        int(path.name): parse_offsets(path.read_bytes())
        for path in (checkpoint / "offsets").iterdir()
    }
    return dict(sorted(found.items()))


@pytest.mark.parametrize("version", ["3.5", "4.0", "4.1", "4.2", "4.3"])
def test_the_checkpoint_is_as_spark_writes_one_with_names(version: str, tmp_path: Path) -> None:
    cp = Path(shutil.copytree(GOLDEN / version / "union" / "checkpoint", tmp_path / "cp"))
    new = tmp_path / "new"
    assert api.convert(str(cp), str(new), name=NAMES, carrying=GO).executed
    before, after = entries(cp), entries(new)
    assert after
    for number, entry in after.items():
        assert entry.version == 2
        assert entry.metadata.conf == {**before[number].metadata.conf, EVOLUTION: "true"}
        assert json.loads(entry.metadata.text)["sourceMetadataInfo"] == {}
        assert dict(entry.offsets) == {
            NAMES[source]: text for source, text in before[number].offsets if text is not None
        }
    assert {path.name for path in (new / "sources").iterdir()} == {"web", "shop"}
    assert (new / "sources/web/2").read_bytes() == (cp / "sources/0/2").read_bytes()
    assert (new / "metadata").read_bytes() == (cp / "metadata").read_bytes()
    seen = api.inspect(str(new))
    assert [(one.id, one.kind) for one in seen.sources] == [("web", "file"), ("shop", "file")]
    assert [one.code for one in api.doctor(str(new))] == [one.code for one in api.doctor(str(cp))]


def test_a_source_without_an_offset_has_no_line_and_keeps_its_name(
    cp: Path, tmp_path: Path
) -> None:
    # Batch 1 of the golden one has a line `-` for the source that had no file yet.
    assert dict(entries(cp)[1].offsets)["1"] is None
    api.convert(str(cp), str(tmp_path / "new"), name=NAMES, carrying=GO)
    assert [source for source, _ in entries(tmp_path / "new")[1].offsets] == ["web"]


def test_an_unnamed_log_of_version_2_gets_names_too(tmp_path: Path) -> None:
    cp = shutil.copytree(GOLDEN / "4.3" / "offsets-v2" / "checkpoint", tmp_path / "cp")
    new = tmp_path / "new"
    api.convert(str(cp), str(new), name=NAMES, carrying=GO)
    assert {source for source, _ in entries(new)[2].offsets} == {"web", "shop"}
    assert entries(new)[2].metadata.conf[EVOLUTION] == "true"


def test_names_can_be_changed(tmp_path: Path) -> None:
    cp = shutil.copytree(GOLDEN / "4.3" / "named-sources" / "checkpoint", tmp_path / "cp")
    new = tmp_path / "new"
    api.convert(str(cp), str(new), name={"web": "shop", "shop": "store"}, carrying=GO)
    old, now = dict(entries(Path(cp))[2].offsets), dict(entries(new)[2].offsets)
    assert now == {"shop": old["web"], "store": old["shop"]}
    assert (new / "sources/shop/2").read_bytes() == (Path(cp) / "sources/web/2").read_bytes()


def test_state_goes_along_and_the_provider_may_change_as_well(tmp_path: Path) -> None:
    cp = shutil.copytree(GOLDEN / "4.3" / "sales-hdfs" / "checkpoint", tmp_path / "cp")
    new = str(tmp_path / "new")
    change = api.convert(str(cp), new, name={"0": "orders"}, provider="rocksdb", carrying=GO)
    assert change.plan.options["provider"] == "rocksdb"
    assert change.plan.options["name"] == {"0": "orders"}
    rows = [sorted(map(repr, floodmark.read_state(str(place)).rows())) for place in (cp, new)]
    assert rows[0] == rows[1] != []
    assert [one.id for one in api.inspect(new).sources] == ["orders"]


def test_what_a_refused_start_with_names_left_is_not_taken(cp: Path, tmp_path: Path) -> None:
    (cp / "sources" / "web").mkdir()
    (cp / "sources" / "web" / "0").write_text("v1\nof a start that Spark refused")
    new = tmp_path / "new"
    api.convert(str(cp), str(new), name=NAMES, carrying=GO)
    assert (new / "sources/web/0").read_bytes() == (cp / "sources/0/0").read_bytes()


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"0": "web"}, "no name for source 1 (file)"),
        ({"0": "web", "1": "web"}, "web would be the name of more than one source"),
        ({"0": "web", "1": "shop", "7": "more"}, "no source 7"),
        ({"0": "../../etc", "1": "shop"}, "Spark takes no such name"),
        ({"0": "web/../..", "1": "shop"}, "Spark takes no such name"),
        ({"0": "wéb", "1": "shop"}, "Spark takes no such name"),
        ({"0": "", "1": "shop"}, "Spark takes no such name"),
        ({"0": "a:b", "1": "shop"}, "Spark takes no such name"),
    ],
)
def test_names_that_spark_would_not_take(
    names: dict[str, str], said: str, cp: Path, tmp_path: Path
) -> None:
    with pytest.raises(WrongUse) as refused:
        api.convert(str(cp), str(tmp_path / "new"), name=names, carrying=GO)
    assert said in str(refused.value)
    assert not (tmp_path / "new").exists()


def test_names_that_are_there_already(tmp_path: Path) -> None:
    cp = shutil.copytree(GOLDEN / "4.3" / "named-sources" / "checkpoint", tmp_path / "cp")
    with pytest.raises(NoAnswer, match="these names already"):
        api.convert(str(cp), str(tmp_path / "new"), name={"web": "web"}, carrying=GO)


def test_continuous_processing_has_no_settings_to_say_it_in(tmp_path: Path) -> None:
    cp = shutil.copytree(GOLDEN / "4.3" / "continuous" / "checkpoint", tmp_path / "cp")
    with pytest.raises(NotCarried, match="continuous processing"):
        api.convert(str(cp), str(tmp_path / "new"), name={"0": "rate"}, carrying=GO)


def test_one_stream_that_is_read_twice_has_no_two_names(cp: Path, tmp_path: Path) -> None:
    for path in (cp / "offsets").iterdir():
        lines = path.read_text().split("\n")
        path.write_text("\n".join([*lines[:3], lines[2]]))
    shutil.rmtree(cp / "sources" / "1")
    with pytest.raises(NotCarried, match="reads twice"):
        api.convert(str(cp), str(tmp_path / "new"), name=NAMES, carrying=GO)


def test_the_folder_in_deltas_log_of_schemas_has_the_name() -> None:
    line = '{"tableId":"t","sourceMetadataPath":"s3a://b/sources/cp/sources/0"}'
    moved = renamed_schema_log(f"v1\n{line}".encode(), "orders").decode()
    assert json.loads(moved.split("\n")[1])["sourceMetadataPath"].endswith("/cp/sources/orders")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to convert"),
        (["--state-format", "2"], "no --provider"),
        (["--name", "web"], "give ID=NAME, such as 0=orders"),
        (["--name", "0=web", "--name", "0=shop"], "named twice"),
    ],
)
def test_the_command_says_what_is_missing(
    arguments: list[str], said: str, cp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["convert", str(cp), str(tmp_path / "new"), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_saved_plan_names_the_sources(cp: Path, tmp_path: Path) -> None:
    saved, new = tmp_path / "plan.json", tmp_path / "new"
    api.convert(str(cp), str(new), name=NAMES, out=str(saved))
    assert not new.exists()
    assert api.apply(str(saved), carrying=GO).executed
    assert {source for source, _ in entries(new)[2].offsets} == {"web", "shop"}
    again = api.convert(str(cp), str(new), name=NAMES, carrying=GO)
    assert again.executed
    with pytest.raises(FloodmarkError):
        api.convert(str(cp), str(new), name={"0": "a", "1": "b"}, carrying=GO)
