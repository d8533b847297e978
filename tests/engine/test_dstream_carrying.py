"""What is decided of DStreams before Spark is asked: which state, which code, which file."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

import floodmark
import samples
from floodmark.checkpoint.dstreams.folder import (
    DStream,
    DStreamsCheckpoint,
    GraphFile,
    OffsetRange,
    SavedRdd,
)
from floodmark.checkpoint.model import Checkpoint, Kind, Unreadable
from floodmark.cli.main import run
from floodmark.dstreams.input_files import InputFiles, input_files
from floodmark.engine.app.script_text import read_source
from floodmark.engine.dstreams.application import is_dstream
from floodmark.engine.dstreams.code_notes import CodeChanged, code_of, noted_code, require_same_code
from floodmark.engine.dstreams.declaration import dstream
from floodmark.engine.dstreams.leaving import _chosen, _kafka_start, _require_taken
from floodmark.engine.dstreams.quiet import require_quiet, require_stopped
from floodmark.engine.dstreams.takeover import (
    _reshape,
    old_state,
    require_all_saved,
    require_no_window,
    require_remembered,
    set_aside,
    state_time,
    told_files,
    unread_inputs,
)
from floodmark.errors import CannotRead, InUse, NoAnswer, NotACheckpoint, WouldLose, WrongUse
from floodmark.state.files.compression import decompress
from floodmark.storage.files import open_files
from floodmark.storage.load import load
from rules.examples import golden

Capture = pytest.CaptureFixture[str]
STATE = DStream("PythonStateDStream", rdds={1000: "x/rdd-1", 2000: "x/rdd-2"})


def _rdd(stream: int, time_ms: int, missing: int | None = None) -> SavedRdd:
    return SavedRdd(f"x/rdd-{stream}{time_ms}", 2, 10, None, missing, time_ms, stream)


def _found(*rdds: SavedRdd, streams: tuple[DStream, ...] = (STATE, STATE)) -> DStreamsCheckpoint:
    return DStreamsCheckpoint(
        (2000,), "checkpoint-2000", None, 1000, 1000, 1000, (), rdds, 2000, 0, streams=streams
    )


def test_the_newest_batch_of_which_every_state_is_whole() -> None:
    both = (_rdd(0, 1000), _rdd(0, 2000), _rdd(1, 1000), _rdd(1, 2000))
    assert state_time("cp", _found(*both), (0, 1)) == 2000
    assert state_time("cp", _found(*both[:3]), (0, 1)) == 1000
    torn = (*both[:3], _rdd(1, 2000, missing=1))
    assert state_time("cp", _found(*torn), (0, 1)) == 1000
    apart = _found(_rdd(0, 1000), _rdd(1, 2000))
    with pytest.raises(CannotRead, match="no batch for which every state") as refused:
        state_time("cp", apart, (0, 1))
    assert "leave-dstreams --stream N" in refused.value.do
    assert [state_time("cp", apart, (stream,)) for stream in (0, 1)] == [1000, 2000]


def test_what_is_newer_and_not_taken_is_said() -> None:
    torn = _found(_rdd(0, 1000), _rdd(0, 2000, missing=1), _rdd(1, 1000))
    newer = (
        GraphFile("checkpoint-2000", 2000, False, 1),
        GraphFile("checkpoint-3000", 3000, False, 1),
    )
    found = replace(torn, graph_files=newer)
    checkpoint = Checkpoint(
        "cp",
        Kind.DSTREAMS,
        (),
        True,
        unreadable=(Unreadable("checkpoint-3000", "the file is empty"),),
        dstreams=found,
    )
    assert set_aside(checkpoint) == (
        "checkpoint-3000 cannot be read (the file is empty), so checkpoint-2000 is used",
    )
    assert set_aside(checkpoint, (0,), 1000)[1:] == (
        "stream 0: the state after the batch of 2000 is not complete here, so the state of 1000 "
        "is used",
    )
    assert set_aside(replace(checkpoint, unreadable=()), (1,), 2000) == ()


def test_a_state_that_is_not_saved_yet_is_not_begun_empty() -> None:
    unsaved = DStream("PythonStateDStream", checkpoint_interval_ms=10_000)
    found = _found(_rdd(0, 1000), streams=(STATE, unsaved))
    require_all_saved("cp", _found())
    with pytest.raises(
        WouldLose, match=r"stream 1 \(PythonStateDStream, not saved yet\)"
    ) as refused:
        require_all_saved("cp", found)
    assert "every 10 s" in refused.value.do
    assert _chosen("cp", found, 0) == 0
    with pytest.raises(WrongUse, match="several streams keep a state"):
        _chosen("cp", found, None)
    with pytest.raises(NoAnswer, match="the state of stream 1 is not saved yet"):
        _chosen("cp", found, 1)


def test_batches_that_the_input_has_forgotten_are_not_taken_for_read() -> None:
    files = DStream("FileInputDStream", files={3000: ("a",), 4000: ()}, directory="/in")
    found = _found(streams=(files, STATE))
    for as_of in (2000, 3000):
        require_remembered("cp", found, files, as_of)
    with pytest.raises(WouldLose, match="/in has forgotten which files it read after the batch of"):
        require_remembered("cp", found, files, 1999)
    ranges = {3000: (OffsetRange("t", 0, 5, 8),), 4000: (OffsetRange("t", 0, 8, 9),)}
    kafka = DStream("DirectKafkaInputDStream", offsets=ranges)
    other = replace(kafka, offsets={})
    found = _found(streams=(kafka, replace(STATE, parents=(0,)), other, STATE))
    starts = {as_of: _kafka_start("cp", found, 1, as_of) for as_of in (2000, 3000, 4000)}
    ends = {as_of: start.sources[0].offsets["t"]["0"] for as_of, start in starts.items() if start}
    assert ends == {2000: 5, 3000: 8, 4000: 9}
    with pytest.raises(WouldLose, match="the Kafka stream has forgotten"):
        _kafka_start("cp", found, 1, 1000)
    assert _kafka_start("cp", found, 2, 1000) is None
    # Where nobody can tell what is behind a state, every input counts.
    assert _kafka_start("cp", found, 3, 3000) == starts[3000]


@pytest.mark.parametrize(
    ("name", "age_ms", "options", "why"),
    [
        ("_late.csv", 0, {}, "underscore"),
        ("late.csv", 8 * 86_400_000, {}, "maxFileAge"),
        ("late.csv", 0, {"pathglobfilter": "*.json"}, "pathGlobFilter"),
        ("late.csv", 8 * 86_400_000, {"maxfileage": "90d"}, None),
        ("late.csv", 8 * 86_400_000, {"latestfirst": "true"}, "maxFileAge"),
        ("late.csv", 8 * 86_400_000, {"latestfirst": "true", "maxfilespertrigger": "9"}, None),
        ("late.csv", 0, {"pathglobfilter": "*.{json,csv}"}, None),
        ("late.csv", 0, {"pathglobfilter": "*.csv"}, None),
    ],
)
def test_files_that_the_new_source_would_pass_over(
    name: str, age_ms: int, options: dict[str, str], why: str | None
) -> None:
    now = 1_794_737_452_000
    times = ((f"file:/in/{name}", now - age_ms), ("file:/in/read.csv", now))
    taken = InputFiles("/in", (times[0][0],), (times[1][0],), (), 0, (), times)
    if why is None:
        _require_taken("cp", taken, options)
        return
    with pytest.raises(WouldLose, match=f"{name} is not read yet") as refused:
        _require_taken("cp", taken, options)
    assert why in refused.value.why


def test_files_from_before_the_stream_are_said() -> None:
    stream = DStream(
        "FileInputDStream", files={9000: ("in/b",)}, directory="in", ignores_before_ms=500
    )
    one = input_files(stream, 9000, 9000, [("in/a", 400), ("in/b", 8000), ("in/c", 9500)])
    assert one.passed_over == ("in/a",)
    assert told_files(one) == (
        "in: 2 files count as read; the new context reads 1 files that the state does not hold. "
        "1 of the read files is older than the old application's stream, which ignored them (a)."
    )


def test_without_state_the_last_finished_batch_counts() -> None:
    plain = _found(streams=(DStream("ForEachDStream"),))
    assert state_time("cp", plain, ()) == 2000
    assert state_time("cp", replace(plain, pending_times=(1000, 2000)), ()) == 999


def test_an_application_that_writes_is_not_left(tmp_path: Path) -> None:
    tree = golden("4.2/dstreams")
    place = samples.write(tmp_path / "cp", tree)
    files = open_files(str(place))
    newest = place / f"checkpoint-{int(time.time() * 1000)}"
    newest.write_bytes(tree["checkpoint-1794737452000"])
    with pytest.raises(InUse, match=r"its newest file is \d s old") as refused:
        require_stopped(files, load(files))
    assert "10 s after its last file: in " in str(refused.value.do)
    newest.unlink()
    # One that makes up for missed batches writes names of long ago.
    written: list[float] = []

    def write(_: float) -> None:
        written.append(0)
        if len(written) == 3:
            (place / "checkpoint-1794737454000").write_bytes(tree["checkpoint-1794737452000"])

    with pytest.raises(InUse, match="its files have changed while it was watched"):
        require_quiet(files, load(files), write)
    require_quiet(files, load(files), lambda _: None)
    # A storage's clock may be ahead of this machine's, and the application's machine too.
    soon = time.time() + 3600
    for path in place.glob("checkpoint-*"):
        os.utime(path, (soon, soon))
    written.clear()
    (place / "checkpoint-1794737454000").unlink()
    with pytest.raises(InUse, match="its files have changed while it was watched"):
        require_quiet(files, load(files), write)
    for path in place.glob("checkpoint-*"):
        os.utime(path, (0, 0))
    require_stopped(files, load(files))
    ahead = place / f"checkpoint-{int(time.time() * 1000) + 9_000}"
    ahead.write_bytes(tree["checkpoint-1794737452000"])
    with pytest.raises(InUse, match=r"its newest file is \d s old"):
        require_stopped(files, load(files))


@pytest.mark.parametrize("text", ["x = 1", "def stat(key, value): ...", "1/0"])
def test_a_file_without_a_function_for_the_state(text: str, tmp_path: Path) -> None:
    path = tmp_path / "reshape.py"
    path.write_text(text)
    with pytest.raises(WrongUse):
        _reshape(str(path))


def test_the_function_changes_and_drops_keys(tmp_path: Path) -> None:
    path = tmp_path / "reshape.py"
    path.write_text(
        "def state(key, value):\n    return None if key == 'mark' else (key, [value])\n"
    )
    files = open_files(str(samples.write(tmp_path / "cp", golden("4.2/dstreams"))))
    found = load(files)
    state = old_state(files, found, 2, 1794737452000, False, str(path))
    assert (state.partitions, state.pairs) == (2, [("flood", [2])])
    path.write_text("def state(key, value):\n    return value\n")
    with pytest.raises(WrongUse, match="returns int"):
        old_state(files, found, 2, 1794737452000, False, str(path))


def test_the_fields_of_an_object_have_no_order(tmp_path: Path) -> None:
    """Java writes them sorted: taken by their place, a sum would be taken for a count."""
    files = open_files(str(samples.write(tmp_path / "cp", golden("4.2/dstreams-scala"))))
    found = load(files)
    mapped, classes = (
        old_state(files, found, stream, 1794832879000, False, None) for stream in (4, 9)
    )
    assert mapped.without_order == frozenset()
    assert classes.without_order == {"value"}
    path = tmp_path / "reshape.py"
    path.write_text("def state(key, value):\n    return key, (value['count'], value['spent'])\n")
    reshaped = old_state(files, found, 9, 1794832879000, False, str(path))
    assert reshaped.without_order == frozenset()


def test_other_code_is_told_by_what_it_does(tmp_path: Path) -> None:
    def one(ssc: object) -> int:
        return 1

    def same(ssc: object) -> int:
        # another comment
        return 1

    def two(ssc: object) -> int:
        return 2

    declared = [dstream(checkpoint="cp", batch="5s")(function) for function in (one, same, two)]
    codes = [code_of(each, {}) for each in declared]
    assert codes[0] == codes[1] != codes[2]
    assert code_of(declared[0], {"region": "eu"}) != codes[0]
    found = _found()
    require_same_code("cp", found, {"code": codes[0]}, codes[1], "app.py")
    with pytest.raises(CodeChanged, match="the code has changed") as changed:
        require_same_code("cp", found, {"code": codes[0]}, codes[2], "app.py")
    assert changed.value.status == 4
    assert "floodmark run app.py --fresh-with-state" in changed.value.do
    with pytest.raises(CodeChanged, match="no note says"):
        require_same_code("cp", found, None, codes[0], "app.py")


def test_a_note_counts_for_the_context_that_it_was_written_for(tmp_path: Path) -> None:
    notes = {"1": {"code": "a", "zero_time_ms": 0}, "2": {"code": "b", "zero_time_ms": 7}}
    tree = {
        f"_floodmark/starts/{number}.json": json.dumps(
            {"floodmark": "dstream-note", **note}
        ).encode()
        for number, note in notes.items()
    }
    tree |= {"_floodmark/starts/3.json": b"[[[", "_floodmark/starts/4.json": b'{"code": 1}'}
    files = open_files(str(samples.write(tmp_path / "cp", tree)))
    found = noted_code(files, _found())
    assert found is not None
    assert found["code"] == "a"
    assert noted_code(files, replace(_found(), zero_time_ms=99)) is None


def test_a_file_of_pipelines_and_dstreams_wants_a_name(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(
        "from floodmark import dstream, pipeline\n"
        "@dstream(checkpoint='a', batch='1s')\ndef old(ssc): ...\n"
        "@pipeline(checkpoint='b')\ndef new(spark, start): ...\n"
    )
    source = read_source(app)
    assert is_dstream(source, f"{app}:old")
    assert not is_dstream(source, f"{app}:new")
    with pytest.raises(WrongUse, match="pipelines and DStreams"):
        is_dstream(source, str(app))


def test_leaving_what_is_no_dstreams(tmp_path: Path, capsys: Capture) -> None:
    place = samples.write(tmp_path / "cp", samples.sales(2))
    (tmp_path / "app.py").write_text("")
    with pytest.raises(NotACheckpoint, match="is not a DStreams checkpoint"):
        floodmark.leave_dstreams(str(place), str(tmp_path / "new"), app=str(tmp_path / "app.py"))
    words = ["leave-dstreams", str(place), str(tmp_path / "new"), "--app", "app.py"]
    assert run(words) == 3
    assert not (tmp_path / "new").exists()


def test_leaving_says_which_state_is_meant(tmp_path: Path, capsys: Capture) -> None:
    place = samples.write(tmp_path / "cp", golden("4.2/dstreams-scala"))
    words = ["leave-dstreams", str(place), str(tmp_path / "new"), "--app", "app.py"]
    assert run(words) == 2
    err = capsys.readouterr().err
    assert "4 (InternalMapWithStateDStream), 9 (StateDStream)" in err
    assert "--stream 4" in err


def test_a_window_is_no_state_that_goes_on(tmp_path: Path) -> None:
    """Nor are the rows of one batch, which any stream saves when it is told to."""
    window = DStream(
        "PythonReducedWindowedDStream", checkpoint_interval_ms=1000, rdds={1000: "x/rdd-1"}
    )
    mapped = replace(window, kind="PythonTransformedDStream")
    found = _found(_rdd(0, 1000), _rdd(1, 1000), _rdd(2, 1000), streams=(window, mapped, STATE))
    assert found.state_streams == (0, 1, 2)
    assert found.lasting_streams == (2,)
    with pytest.raises(WouldLose, match=r"a window cannot be carried over: stream 0 "):
        require_no_window("cp", found)
    require_no_window("cp", replace(found, streams=(mapped, STATE)))
    assert _chosen("cp", found, None) == 2
    for stream in (0, 1):
        with pytest.raises(NoAnswer, match="no lasting state"):
            _chosen("cp", found, stream)
    with pytest.raises(NoAnswer, match="no stream of this application has saved a state"):
        _chosen("cp", replace(found, streams=(window, mapped)), None)


def test_files_that_a_function_chooses_are_not_guessed(tmp_path: Path) -> None:
    own = b"org/apache/spark/streaming/dstream/FileInputDStream$"
    tree = golden("4.2/dstreams-scala")
    newest = "checkpoint-1794832881000"
    content = decompress(tree[newest])
    assert own in content
    other = b"org/example/streaming/sales/OrdersOfTodayInputFolder"
    assert len(other) == len(own)
    for data, chooses in ((content, False), (content.replace(own, other), True)):
        place = samples.write(tmp_path / str(chooses), {**tree, newest: data})
        found = load(open_files(str(place))).dstreams
        assert found is not None
        assert found.streams[0].has_own_filter is chooses
    with pytest.raises(WouldLose, match="a function of the old application decides"):
        unread_inputs(None, "cp", found, 0, 9)
    # Only what is behind the state counts: the receiver is behind another stream.
    assert [found.streams[at].kind for at in found.inputs_of(9)].count("FileInputDStream") == 1
    assert "PluggableInputDStream" not in {found.streams[at].kind for at in found.inputs_of(9)}
    assert found.inputs_of(10) == {1, 10}


def test_what_a_receiver_took_is_not_left_behind_without_a_word(tmp_path: Path) -> None:
    """It is in the old application's log alone. A state beside it can be taken all the same."""
    place = samples.write(tmp_path / "cp", golden("4.2/dstreams-scala"))
    found = floodmark.inspect(str(place)).dstreams
    assert found is not None
    only = replace(
        found, streams=tuple(one for one in found.streams if one.kind != "FileInputDStream")
    )
    with pytest.raises(
        WouldLose, match=r"what receiver stream \[1\] received since the state"
    ) as refused:
        unread_inputs(None, "cp", only, 0)
    assert "--old-code" in refused.value.do
    assert "--export state.parquet" in refused.value.do
