"""Paths inside a checkpoint say storage by the name that Spark's cluster has for it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import floodmark
from floodmark.changes.carry.rehome import hadoop_root, moved_note, moved_operator_metadata


@pytest.mark.parametrize(
    ("location", "like", "root"),
    [
        ("/data/new", "file:/data/old/state", "file:/data/new"),
        ("/data/new", "s3a://bucket/old/state", "file:/data/new"),
        ('/data/mär z%20#"[1]', "file:/data/old/state", 'file:/data/mär z%20#"[1]'),
        ("s3://bucket/new", "s3a://bucket/old/state", "s3a://bucket/new"),
        ("s3://bucket/new/", "s3://bucket/old/state", "s3://bucket/new"),
        ("s3://bucket/new", "file:/data/old/state", "s3a://bucket/new"),
        ("gcs://bucket/new", "file:/data/old/state", "gs://bucket/new"),
        ("hdfs://name:8020/new", "s3a://bucket/old/state", "hdfs://name:8020/new"),
    ],
)
def test_a_root_is_written_as_hadoop_writes_it(location: str, like: str, root: str) -> None:
    assert hadoop_root(location, like) == root


def test_what_was_drawn_on_a_disk_is_named_like_the_old_checkpoint() -> None:
    paths = ["file:/tmp/drawn/state/0/_stateSchema/default/0_a"]
    body = {"stateStoreInfo": [{"storeName": "default", "stateSchemaFilePaths": paths}]}
    data = f"v2\n{json.dumps(body)}".encode()
    for like, root in (
        (None, "s3a://bucket/new"),
        ("s3://bucket/old/state/0/_stateSchema/default/0_b", "s3://bucket/new"),
        ("s3a://bucket/old/state/0/_stateSchema/default/0_b", "s3a://bucket/new"),
    ):
        moved = moved_operator_metadata(data, "s3://bucket/new", like)
        found = json.loads(moved.decode().partition("\n")[2])["stateStoreInfo"][0]
        assert found["stateSchemaFilePaths"] == [f"{root}/state/0/_stateSchema/default/0_a"]


def test_a_note_of_a_start_is_led_along() -> None:
    """Whole names alone: /data/in is no part of /data/input."""
    note = {
        "sources": [{"options": {"path": "/data/in"}, "description": "Source[file:/data/in]"}],
        "sink_options": {"path": "/data/input"},
        "plan": "reads file:/data/in/a, file:/data/input",
    }
    moved = json.loads(moved_note(json.dumps(note).encode(), [("/data/in", "/new/in")]))
    assert moved["sources"] == [
        {"options": {"path": "/new/in"}, "description": "Source[file:/new/in]"}
    ]
    assert moved["sink_options"] == {"path": "/data/input"}
    assert moved["plan"] == "reads file:/new/in/a, file:/data/input"


_NAMES = st.text(st.sampled_from("aä %20#?[]{}\\\"'+;&=~:é"), min_size=1, max_size=12)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_NAMES)
@pytest.mark.parametrize("name", ["join-v3", "transform-with-state"])
@pytest.mark.parametrize("verb", ["copy", "upgrade"])
def test_the_new_place_has_any_name(verb: str, name: str, tmp_path: Path, folder: str) -> None:
    """Spark takes a state whose schema path leads nowhere as one without a schema."""
    with tempfile.TemporaryDirectory(dir=tmp_path) as scratch:
        new = f"{scratch}/{folder}"
        golden = Path(__file__).parents[1] / "golden" / "4.2" / name / "checkpoint"
        getattr(floodmark, verb)(golden, new, execute=True)
        assert not any(one.rule == "moved-checkpoint" for one in floodmark.doctor(new))
        (metadata,) = Path(new).glob("state/0/_metadata/v2/*[0-9]")
        fields = json.loads(metadata.read_text().partition("\n")[2])
        for path in fields["stateStoreInfo"][0]["stateSchemaFilePaths"]:
            assert Path(path.removeprefix("file:")).is_file()
