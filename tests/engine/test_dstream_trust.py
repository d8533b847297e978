"""With `--trust` Spark is asked for what a DStreams folder does not tell as data."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import floodmark
import samples
from floodmark.checkpoint.dstreams.folder import DStream
from floodmark.cli.main import run
from floodmark.dstreams.plain_pickle import NotPlain
from floodmark.errors import CannotRead
from floodmark.state.files.compression import compress, decompress
from rules.examples import golden

Capture = pytest.CaptureFixture[str]
PYTHON, SCALA = "checkpoint-1794737452000", "checkpoint-1794832881000"
KRYO = b"org.apache.spark.serializer.KryoSerializer"


def _text(value: bytes) -> bytes:
    return struct.pack(">H", len(value)) + value


def _saved_with_kryo(tmp_path: Path) -> Path:
    """The folder of Scala, whose application says that Kryo saves its states."""
    tree = golden("4.2/dstreams-scala")
    said = decompress(tree[SCALA])
    for old, new in (
        (b"spark.sql.warehouse.dir", b"spark.serializer"),
        (b"/tmp/floodmark-golden/warehouse", KRYO),
    ):
        assert said.count(_text(old)) == 1
        said = said.replace(_text(old), _text(new))
    tree[SCALA] = said
    return samples.write(tmp_path / "cp", tree)


def test_a_state_of_kryo_wants_trust(tmp_path: Path, capsys: Capture) -> None:
    place = _saved_with_kryo(tmp_path)
    assert run(["state", str(place), "--operator", "4"]) == 4
    said = capsys.readouterr().err
    assert "saves its state with Kryo" in said
    assert "runs code" in said
    assert "--trust" in said
    with pytest.raises(NotPlain):
        floodmark.read_state(str(place), operator=4)
    for verb in ("inspect", "state"):
        assert run([verb, str(place), "--conf", "spark.jars=app.jar"]) == 2
        assert "for the Spark that --trust asks" in capsys.readouterr().err


def test_what_cannot_be_read_says_how_to_ask_spark(tmp_path: Path, capsys: Capture) -> None:
    place = samples.write(tmp_path / "cp", {**golden("4.2/dstreams"), PYTHON: b"of another codec"})
    assert run(["inspect", str(place)]) == 0
    said = capsys.readouterr().out
    assert "With --trust Spark is asked" in said
    assert "runs code" in said
    sound = samples.write(tmp_path / "sound", golden("4.2/dstreams"))
    assert run(["inspect", str(sound)]) == 0
    assert "--trust" not in capsys.readouterr().out


def _unplaced(streams: tuple[DStream, ...]) -> list[tuple[DStream, list[str]]]:
    """Spark goes through the streams in another order than it writes them: parents by kind."""
    return sorted(
        (
            (replace(one, parent=None, parents=()), [streams[at].kind for at in one.parents])
            for one in streams
        ),
        key=repr,
    )


@pytest.mark.spark
def test_spark_says_what_is_read_as_data(
    spark: Any, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(samples.write(tmp_path / "cp", golden("4.2/dstreams")))
    as_data = floodmark.inspect(place).dstreams
    assert as_data is not None
    assert as_data.spark is None
    asked = floodmark.inspect(place, trust=True).dstreams
    assert asked is not None
    assert asked.spark is not None
    assert (asked.spark.version, asked.spark.restart_file) == (spark.version, PYTHON)
    assert asked.spark.checkpoint_time_ms == as_data.checkpoint_time_ms
    assert not asked.spark.failures
    assert replace(asked, spark=None) == as_data

    # What is beyond the limits of reading as data: everything comes from Spark.
    monkeypatch.setenv("FLOODMARK_LIMITS", "graph=1k")
    unread = floodmark.inspect(place).dstreams
    assert unread is not None
    assert unread.restart_file is None
    assert run(["inspect", place, "--trust", "--json"]) == 0
    wire = json.loads(capsys.readouterr().out)["dstreams"]
    assert (wire["spark"]["restart_file"], wire["batch_ms"]) == (PYTHON, 2000)
    told = floodmark.inspect(place, trust=True).dstreams
    assert told is not None
    assert _unplaced(told.streams) == _unplaced(as_data.streams)
    assert told.fall_back_file == as_data.fall_back_file
    states = {one.path: one.batch_time_ms for one in told.rdds}
    assert states == {one.path: one.batch_time_ms for one in as_data.rdds}
    same = ("checkpoint_interval_ms", "state_interval_ms", "pending_times", "zero_time_ms")
    for name in (*same, "master", "app_name", "directory", "conf", "codec", "language"):
        assert getattr(told, name) == getattr(as_data, name), name


@pytest.mark.spark
def test_a_class_that_is_missing_is_named(spark: Any, tmp_path: Path, capsys: Capture) -> None:
    place = str(samples.write(tmp_path / "cp", golden("4.2/dstreams-scala")))
    asked = floodmark.inspect(place, trust=True).dstreams
    assert asked is not None
    assert asked.spark is not None
    assert asked.spark.restart_file is None
    assert "floodmark.golden" in asked.spark.failures[SCALA]
    assert asked.restart_file == SCALA, "as data it can be read"
    assert run(["inspect", place, "--trust"]) == 0
    said = capsys.readouterr().out
    assert "takes none of these files" in said
    assert "getOrCreate fails here" in said
    assert "If it restarts now" not in said
    assert "ClassNotFoundException" in said
    assert "--conf spark.jars=APP.jar" in said


@pytest.mark.spark
def test_a_checkpoint_of_another_spark(spark: Any, tmp_path: Path, capsys: Capture) -> None:
    """It is read as data; this Spark cannot recover it, and says so in a sentence."""
    place = samples.write(tmp_path / "cp", golden("3.5/dstreams"))
    asked = floodmark.inspect(str(place), trust=True).dstreams
    assert asked is not None
    assert asked.spark is not None
    assert asked.batch_ms == 2000
    assert asked.spark.restart_file is None
    assert asked.restart_file in asked.spark.failures
    before = {path: path.stat().st_mtime_ns for path in place.rglob("checkpoint-*")}
    app = tmp_path / "app.py"
    app.write_text(
        "from floodmark import dstream\n"
        f"@dstream(checkpoint={str(place)!r}, batch='2s')\n"
        "def words(ssc): ...\n"
    )
    with pytest.raises(CannotRead, match="Spark cannot recover the context") as refused:
        floodmark.run(str(app), old_code=True)
    assert "Another Spark" in refused.value.do
    assert "--fresh-with-state" in refused.value.do
    assert {path: path.stat().st_mtime_ns for path in place.rglob("checkpoint-*")} == before


@pytest.mark.spark
def test_trust_reads_a_state_of_kryo_through_spark(
    spark: Any, tmp_path: Path, capsys: Capture
) -> None:
    place = _saved_with_kryo(tmp_path)
    jvm, serializers = spark._jvm, spark._jvm.org.apache.spark.serializer
    conf = spark.sparkContext._jsc.sc().conf()
    tag = getattr(getattr(jvm, "scala.reflect.ClassTag$"), "MODULE$").Any()
    for part in place.glob("*/rdd-121/part-*"):
        stream = jvm.java.io.ByteArrayInputStream(decompress(part.read_bytes()))
        records = serializers.JavaSerializer(conf).newInstance().deserializeStream(stream)
        out = jvm.java.io.ByteArrayOutputStream()
        kryo = serializers.KryoSerializer(conf).newInstance().serializeStream(out)
        kryo.writeAll(records.asIterator(), tag)
        kryo.close()
        saved = bytes(out.toByteArray())
        part.write_bytes(compress(saved) if part.name.endswith("1") else saved)
    expected = json.loads(
        (Path(__file__).parents[1] / "golden/4.2/dstreams-scala/expected.json").read_text()
    )["visits"]
    state = floodmark.read_state(str(place), operator=4, trust=True)
    rows = {row["key"]["key"]: list(row["value"].values()) for row in state.rows()}
    assert rows == expected
    # The other state has a class of the application, which is not here.
    assert run(["state", str(place), "--operator", "9", "--trust"]) == 3
    said = capsys.readouterr().err
    assert "Spark cannot read the records of Kryo" in said
    assert "--conf spark.jars=APP.jar" in said
