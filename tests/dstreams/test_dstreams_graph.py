"""A `checkpoint-<time>` file is read as Spark itself reads it, and survives whatever it is."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import pytest

from floodmark.checkpoint.dstreams.batches import dstream_batches
from floodmark.checkpoint.dstreams.folder import DStream, DStreamsCheckpoint, OffsetRange
from floodmark.dstreams.graph import _ranges, read_graph
from floodmark.dstreams.java_objects import (
    MAGIC,
    JavaArray,
    JavaClass,
    JavaObject,
    read_object,
    read_objects,
)
from floodmark.engine.dstreams.leaving import _kafka_start
from floodmark.engine.pipelines.start_positions import KafkaStart
from floodmark.errors import FloodmarkError, MalformedFile, OverLimit
from floodmark.state.files.compression import CODECS, compress, decompress

GOLDEN = Path(__file__).parents[1] / "golden"
FOLDERS = sorted(path.parent for path in GOLDEN.glob("*/dstreams*/expected.json"))
SCALA = GOLDEN / "4.2" / "dstreams-scala"


def _expected(folder: Path) -> dict:
    return json.loads((folder / "expected.json").read_text(encoding="utf-8"))


def _newest(folder: Path) -> bytes:
    return (folder / "checkpoint" / _expected(folder)["checkpoint_files"][-1]).read_bytes()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_says_what_spark_recovered(folder: Path) -> None:
    expected, graph = _expected(folder), read_graph(_newest(folder))
    assert graph.checkpoint_time_ms == expected["checkpoint_time_ms"]
    assert list(graph.pending_times) == sorted(expected["pending_times_ms"])
    assert graph.batch_ms == expected["batch_interval_ms"]
    assert graph.checkpoint_interval_ms == expected["batch_interval_ms"]
    assert graph.app_name == expected["app_name"]
    assert graph.master == "local[2]"
    assert graph.directory == f"file:/tmp/floodmark-golden/{folder.name}/checkpoint"
    assert graph.conf["spark.sql.shuffle.partitions"] == "2"
    assert graph.codec == ("snappy" if folder == SCALA else "lz4")
    files = graph.streams[0]
    assert files.kind == "FileInputDStream"
    assert files.directory == f"/tmp/floodmark-golden/{folder.name}/in"
    assert files.remembers_ms == 60_000
    taken = [name for batch in files.files.values() for name in batch]
    names = ["0.csv", "1.csv"] if folder == SCALA else ["lines.txt"]
    assert taken == [f"file:/tmp/floodmark-golden/{folder.name}/in/{name}" for name in names]
    states = [stream for stream in graph.streams if stream.rdds]
    for stream in states:
        for location in stream.rdds.values():
            folder_there = folder / "checkpoint" / "/".join(location.split("/")[-2:])
            assert (folder_there / "part-00000").exists()


def test_the_streams_of_scala() -> None:
    graph = read_graph(_newest(SCALA))
    states = {stream.kind: stream for stream in graph.streams if stream.rdds}
    assert set(states) == {"InternalMapWithStateDStream", "StateDStream"}
    assert {stream.checkpoint_interval_ms for stream in states.values()} == {5_000}
    assert not graph.is_python


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_of_spark(codec: str) -> None:
    content = decompress(_newest(FOLDERS[0]))
    assert read_graph(compress(content, codec)).codec == codec
    assert read_graph(content).codec is None


def test_a_secret_of_the_configuration_is_not_shown() -> None:
    content = decompress(_newest(GOLDEN / "4.2" / "dstreams"))
    name, value = b"spark.sql.warehouse.dir", b"/tmp/floodmark-golden/warehouse"
    assert name in content
    other = b"spark.my.db.password"
    forged = content.replace(
        struct.pack(">H", len(name)) + name, struct.pack(">H", len(other)) + other
    )
    graph = read_graph(forged)
    assert graph.conf[other.decode()] == "***"
    assert value.decode() not in str(graph.conf)


@pytest.mark.parametrize("folder", [FOLDERS[0], SCALA], ids=["3.5", "scala"])
def test_damage_never_ends_in_anything_but_an_error(folder: Path) -> None:
    content = decompress(_newest(folder))
    chance = random.Random(19)
    broken = 0
    for _ in range(600):
        data = bytearray(content)
        for _ in range(chance.choice((1, 1, 3, 20))):
            data[chance.randrange(4, len(data))] = chance.randrange(256)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        try:
            read_graph(bytes(data))
        except FloodmarkError:
            broken += 1
    assert broken > 60


@pytest.mark.parametrize("packed", [b"", b"LZ4Block", b"\xac\xed", MAGIC, b"\x00" * 40, b"ZV\x01"])
def test_a_file_that_is_cut_short(packed: bytes) -> None:
    with pytest.raises(FloodmarkError):
        read_graph(packed)
    with pytest.raises(FloodmarkError):
        read_graph(_newest(FOLDERS[0])[: len(packed) + 3_000])


def _class(name: str, parent: bytes = b"\x70", flags: int = 2, fields: bytes = b"\0\0") -> bytes:
    text = name.encode()
    return (
        b"\x72"
        + struct.pack(">H", len(text))
        + text
        + bytes(8)
        + bytes([flags])
        + fields
        + (b"\x78" + parent)
    )


def test_another_object_than_sparks() -> None:
    with pytest.raises(MalformedFile, match=r"an object of evil\.Thing"):
        read_graph(MAGIC + b"\x73" + _class("evil.Thing"))
    with pytest.raises(MalformedFile, match="no graph or no time"):
        read_graph(MAGIC + b"\x73" + _class("org.apache.spark.streaming.Checkpoint"))


def test_objects_without_end_inside_each_other() -> None:
    one = b"\0\x01" + b"L\0\x01a\x74\0\x01X"
    first = b"\x73" + _class("a.Box", fields=one)
    inner = b"\x73\x71" + struct.pack(">i", 0x7E0000)
    with pytest.raises(OverLimit, match="levels deep"):
        read_object(MAGIC + first + inner * 30_000)


def test_a_class_with_very_many_parents() -> None:
    chain = b"\x70"
    for at in range(300):
        chain = _class(f"a.C{at}", chain)
    with pytest.raises(OverLimit, match="extends more than"):
        read_object(MAGIC + b"\x73" + chain)


def test_many_objects_of_a_class_with_parents_cost_what_their_bytes_may() -> None:
    chain = b"\x70"
    for at in range(95):
        chain = _class(f"a.C{at}", chain)
    array = b"\x75" + _class("[La.C;") + struct.pack(">i", 200_000)
    again = b"\x73\x71" + struct.pack(">i", 0x7E0002)
    with pytest.raises(OverLimit, match="more work than its size"):
        read_object(MAGIC + array + b"\x73" + chain + again * 200_000)


@pytest.mark.parametrize("size", [-1, 2**31 - 1])
def test_an_array_that_claims_to_be_huge(size: int) -> None:
    for kind in ("[B", "[J", "[Ljava.lang.Object;"):
        stream = MAGIC + b"\x75" + _class(kind) + struct.pack(">i", size)
        if size < 0 and kind.startswith("[L"):
            assert read_object(stream)[0].items == []
            continue
        with pytest.raises(MalformedFile):
            read_object(stream)


def test_a_reset_forgets_what_was_written() -> None:
    text = b"\x74\0\x02hi"
    assert list(read_objects(MAGIC + text + b"\x79" + text)) == ["hi", "hi"]
    with pytest.raises(MalformedFile, match="a reference to nothing"):
        list(read_objects(MAGIC + text + b"\x79\x71" + struct.pack(">i", 0x7E0000)))


def _boxed(value: int) -> JavaObject:
    return JavaObject(JavaClass("java.lang.Long", 2, ()), {"java.lang.Long": {"value": value}})


def test_the_ranges_of_a_direct_kafka_stream() -> None:
    fields = {"_1": "orders", "_2": _boxed(3), "_3": _boxed(10), "_4": _boxed(25)}
    one = JavaObject(JavaClass("scala.Tuple4", 2, ()), {"scala.Tuple4": fields})
    array = JavaArray(JavaClass("[Lscala.Tuple4;", 2, ()), [one, "noise"])
    assert _ranges(array) == (OffsetRange("orders", 3, 10, 25),)
    assert _ranges(JavaArray(JavaClass("[Lscala.Tuple4;", 2, ()), [])) == ()


def test_where_kafka_goes_on_after_a_state() -> None:
    ranges = {
        1000: (OffsetRange("orders", 0, 0, 10), OffsetRange("orders", 1, 5, 7)),
        2000: (OffsetRange("orders", 0, 10, 12), OffsetRange("orders", 1, 7, 7)),
    }
    stream = DStream("DirectKafkaInputDStream", offsets=ranges)
    found = DStreamsCheckpoint(
        (1000,), "checkpoint-1000", None, 1000, 1, 1, (), (), streams=(stream,)
    )
    for as_of, ends in (
        (1000, {"0": 10, "1": 7}),
        (2000, {"0": 12, "1": 7}),
        (0, {"0": 0, "1": 5}),
    ):
        start = _kafka_start("cp", found, 0, as_of)
        assert start is not None
        assert start.sources == (KafkaStart({"orders": ends}),)
    batch = dstream_batches(found)[-1]
    assert batch.sources[0].kind == "kafka"
    assert batch.sources[0].offset == {"orders": {"0": 12, "1": 7}}
