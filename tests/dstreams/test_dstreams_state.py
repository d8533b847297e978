"""The state of a DStreams application is read as data, and no pickle runs."""

from __future__ import annotations

import datetime
import decimal
import json
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest

import floodmark
from floodmark.cli.main import run
from floodmark.dstreams.java_objects import (
    MAGIC,
    JavaArray,
    JavaClass,
    JavaObject,
    read_objects,
)
from floodmark.dstreams.plain_pickle import NotPlain, plain_loads
from floodmark.dstreams.plain_values import named
from floodmark.dstreams.scala import items
from floodmark.dstreams.state_rows import state_pairs
from floodmark.errors import FloodmarkError, MalformedFile, OverLimit
from floodmark.state.files.compression import compress
from rules.examples import golden
from samples import write

GOLDEN = Path(__file__).parents[1] / "golden"
Capture = pytest.CaptureFixture[str]


def _part(*batches: bytes) -> bytes:
    """A part as PySpark saves it: one byte[] a pickled batch."""
    name = b"\x72\0\x02[B" + bytes(8) + b"\x02\0\0\x78\x70"
    first, *others = batches
    stream = MAGIC + b"\x75" + name + struct.pack(">i", len(first)) + first
    for batch in others:
        stream += b"\x75\x71\0\x7e\0\0" + struct.pack(">i", len(batch)) + batch
    return stream


def _folder(tmp_path: Path, part: bytes) -> Path:
    """The golden folder with another state."""
    tree = golden("4.2/dstreams")
    for path in list(tree):
        if "/rdd-134/part-" in path:
            tree[path] = part if path.endswith("0") else _part(pickle.dumps([]))
    return write(tmp_path / "cp", tree)


class _Evil:
    """Its pickle calls os.system when it is read."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


def test_plain_data_comes_back_as_it_was() -> None:
    held = [
        (("c1", 3), {"sum": 1.5, "seen": {1, 2}, "none": None, "big": 2**80}),
        ("Zoë", [datetime.datetime(2026, 1, 2, 3, 4, 5), datetime.date(2026, 1, 2)]),
        (b"key", (decimal.Decimal("1.10"), datetime.timedelta(seconds=5), True, 1j)),
        (1, frozenset({"a"})),
        (2, datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)),
    ]
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert plain_loads(pickle.dumps(held, protocol)) == held
        assert list(state_pairs(_part(pickle.dumps(held, protocol)))) == held
    assert (
        list(state_pairs(compress(_part(pickle.dumps(held[:1]), pickle.dumps(held[1:]))))) == held
    )


@pytest.mark.parametrize("protocol", range(6))
def test_an_evil_pickle_does_not_run(protocol: int, tmp_path: Path, capsys: Capture) -> None:
    proof = tmp_path / "it-ran"
    batch = pickle.dumps([("c1", _Evil(f"touch {proof}"))], protocol)
    with pytest.raises(NotPlain):
        plain_loads(batch)
    place = _folder(tmp_path, _part(batch))
    for arguments in (["--json"], ["--stats"], ["--export", str(tmp_path / "s.parquet")]):
        assert run(["state", str(place), *arguments]) == 4
    err = capsys.readouterr().err
    assert "system" in err
    assert "--trust" in err
    assert not proof.exists()
    assert not (tmp_path / "s.parquet").exists()


def test_trust_runs_it(tmp_path: Path) -> None:
    proof = tmp_path / "it-ran"
    place = _folder(tmp_path, _part(pickle.dumps([("c1", _Evil(f"touch {proof}"))])))
    assert floodmark.read_state(str(place), trust=True).rows() == [
        {"partition": 0, "key": {"key": "c1"}, "value": {"value": 0}}
    ]
    assert proof.exists()


@pytest.mark.parametrize(
    "program",
    [
        b"\x80\x04cbuiltins\neval\n(V1\ntR.",
        b"(S'x'\nios\nsystem\n.",
        b"\x80\x02cos\nsystem\nX\x01\0\0\0x\x85R.",
        b"\x80\x04cdatetime\ndatetime\n}X\x01\0\0\0aK\x01sb.",  # BUILD on a class
        b"\x80\x02cdatetime\ndate\n)\x81.",
        b"Pabc\n.",
        b"\x80\x05\x96\xff\xff\xff\xff\xff\0\0\0.",
        b"\x82\x01.",
    ],
)
def test_operations_that_plain_data_does_not_need(program: bytes) -> None:
    with pytest.raises(NotPlain):
        plain_loads(program)


@pytest.mark.parametrize(
    "program",
    [b"", b".", b"\x80\x04K", b"R.", b"\x80\x04]a.", b"\x80\x04h\x07.", b"j\xff\xff\xff\x7f."],
)
def test_a_damaged_pickle(program: bytes) -> None:
    with pytest.raises(MalformedFile):
        plain_loads(program)


def test_an_index_beyond_all_memory_costs_nothing() -> None:
    assert plain_loads(b"\x80\x04K\x01r\xff\xff\xff\x7f.") == 1


def test_a_list_that_names_itself_many_times_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodmark.dstreams.plain_values._MOST_VALUES", 10_000)
    one: list[Any] = ["x"] * 10
    for _ in range(30):
        one = [one] * 10
    with pytest.raises(OverLimit):
        named(plain_loads(pickle.dumps(one)), "value")
    deep: Any = 1
    for _ in range(90):
        deep = [deep]
    with pytest.raises(OverLimit):
        named(plain_loads(pickle.dumps(deep)), "value")


@pytest.mark.parametrize("version", ["3.5", "4.0", "4.1", "4.2", "4.3"])
def test_the_counts_of_every_spark(version: str) -> None:
    folder = GOLDEN / version / "dstreams"
    expected = json.loads((folder / "expected.json").read_text())
    state = floodmark.read_state(str(folder / "checkpoint"))
    assert {row["key"]["key"]: row["value"]["value"] for row in state.rows()} == expected["counts"]
    assert (state.key_schema, state.value_schema) == ("key STRING", "value BIGINT")


def test_a_map_with_state_and_a_case_class(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    folder = GOLDEN / "4.2" / "dstreams-scala"
    visits = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["visits"]
    place = str(folder / "checkpoint")
    mapped = floodmark.read_state(place, operator=4).rows()
    assert {row["key"]["key"]: list(row["value"].values()) for row in mapped} == visits
    exported = tmp_path / "state.parquet"
    assert floodmark.read_state(place, operator=9).export(str(exported)) == 3
    table = pq.read_table(exported).to_pylist()
    assert {row["key"]["key"]: row["value"] for row in table} == {
        name: {"count": count, "spent": spent} for name, (count, spent) in visits.items()
    }
    before = floodmark.read_state(place, operator=9, batch=1794832874000).rows()
    assert {row["key"]["key"] for row in before} == {"c1", "c2"}


def test_keys_that_are_tuples_and_values_that_are_dicts(tmp_path: Path, capsys: Capture) -> None:
    held = [(("c1", 3), {"sum": 1.5, "n": 2}), (("c2", 4), {"sum": 2.5, "n": 1})]
    place = _folder(tmp_path, _part(pickle.dumps(held)))
    state = floodmark.read_state(str(place))
    assert state.key_schema == "_1 STRING, _2 BIGINT"
    assert state.lookup({"_1": "c2"})[0]["value"] == {"sum": 2.5, "n": 1}
    assert run(["state", str(place), "--key", '{"_1": "c9"}']) == 1


def test_values_of_two_types(tmp_path: Path, capsys: Capture) -> None:
    place = _folder(tmp_path, _part(pickle.dumps([("c1", 3), ("c2", "x")])))
    assert run(["state", str(place), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 2
    assert run(["state", str(place), "--export", str(tmp_path / "s.parquet")]) == 1
    assert "different types" in capsys.readouterr().err


@pytest.mark.parametrize(
    "part", [b"", b"\xac\xed", b"LZ4Block", b"\x01\x02\x03\x04\x05", MAGIC + b"\x73"]
)
def test_a_damaged_part(part: bytes, tmp_path: Path, capsys: Capture) -> None:
    place = _folder(tmp_path, part)
    assert run(["state", str(place)]) == 3
    assert "part-00000" in capsys.readouterr().err


def test_a_record_that_is_no_pair() -> None:
    with pytest.raises(FloodmarkError, match="not a pair"):
        list(state_pairs(_part(pickle.dumps([1, 2]))))


# As Java 17 writes them: what is after java.time.Ser's description.
JAVA_TIME = {
    "02000000006553f100075bcd15": datetime.datetime(2023, 11, 14, 22, 13, 20, 123456),
    "03000007ea0102": datetime.date(2026, 1, 2),
    "04fc": datetime.time(3),
    "040304fa": datetime.time(3, 4, 5),
    "0403040500001770": datetime.time(3, 4, 5, 6),
    "05000007ea010203040500001b58": datetime.datetime(2026, 1, 2, 3, 4, 5, 7),
    "05000007ea0102ff": datetime.datetime(2026, 1, 2),
    "010000000000000005000003e8": datetime.timedelta(seconds=5, microseconds=1),
    "06000007ea01020304fa00070003555443": None,  # a time with a zone
    "0200701cd2fa9578ff3b9ac9ff": None,  # Instant.MAX
    "03000007ea0d02": None,  # a thirteenth month
    "02000000": None,
    "": None,
}


@pytest.mark.parametrize("block", JAVA_TIME)
def test_times_of_java(block: str) -> None:
    described = b"\x72\0\x0djava.time.Ser" + bytes(8) + b"\x0c\0\0\x78\x70"
    data = bytes.fromhex(block)
    written = b"\x77" + bytes([len(data)]) + data
    [value] = read_objects(MAGIC + b"\x73" + described + written + b"\x78")
    if JAVA_TIME[block] is None:
        with pytest.raises(FloodmarkError) as refused:
            named(value, "value")
        assert "--trust" not in refused.value.do, "it would not help"
    else:
        assert named(value, "value") == {"value": JAVA_TIME[block]}


def _made(name: str, **fields: Any) -> JavaObject:
    return JavaObject(JavaClass(name, 2, ()), {name: fields})


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("scala.collection.immutable.ArraySeq$ofRef", "unsafeArray"),
        ("scala.collection.mutable.ArraySeq$ofRef", "array"),
        ("java.util.Arrays$ArrayList", "a"),
    ],
)
def test_a_collection_that_keeps_an_array(name: str, field: str) -> None:
    array = JavaArray(JavaClass("[Ljava.lang.String;", 2, ()), ["a.jar", "b.jar"])
    found = _made(name, **{field: array})
    assert items(found) == ["a.jar", "b.jar"]
    assert named(found, "value") == {"value": ["a.jar", "b.jar"]}


def test_a_collection_without_values_is_not_taken_for_an_empty_one() -> None:
    with pytest.raises(FloodmarkError, match="its own form of writing"):
        named(_made("scala.collection.immutable.Range$Inclusive", start=1, end=5), "value")
    assert named(_made("java.util.Collections$EmptyList"), "value") == {"value": []}
