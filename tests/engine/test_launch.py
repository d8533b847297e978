"""`floodmark.start`: looks first, starts, notes; refuses before anything is made."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streams import put_orders, read_orders, run

from floodmark.checkpoint.start_note import unpacked_tree
from floodmark.engine.code.query import read_query
from floodmark.engine.spark.hadoop import HadoopFiles, checkpoint_files, qualified
from floodmark.engine.spark.jvm import lost_connection
from floodmark.engine.start import lease
from floodmark.engine.start.launch import CodeOrigin, begin, prepare, start
from floodmark.engine.start.lease import PATH as LEASE
from floodmark.engine.start.saved import read_saved
from floodmark.errors import CannotRead, FileGone, OverLimit, Refused, WrongUse
from floodmark.rules.registry import names_to_allow
from floodmark.storage.files import open_files

pytestmark = pytest.mark.spark

NOTHING: frozenset[str] = frozenset()


def totals(session: Any, orders: Path, **trigger: Any) -> Any:
    rows = read_orders(session, orders).groupBy("customerId").sum("amountPaid")
    writer = rows.writeStream.outputMode("complete").format("noop")
    return writer.trigger(**(trigger or {"availableNow": True}))


def test_a_query_is_read_before_it_starts(session: Any, orders: Path) -> None:
    query = read_query(totals(session, orders).option("checkPoint", "x").queryName("q"))
    assert [source.kind for source in query.sources] == ["csv"]
    assert query.sources[0].path == str(orders)
    assert query.sources[0].options["header"] == "true"
    assert (query.sink, query.output_mode, query.name) == ("noop", "Complete", "q")
    assert query.sink_options["checkpoint"] == "x"


def test_foreach_batch_is_told_from_other_sinks(session: Any, orders: Path) -> None:
    writer = read_orders(session, orders).writeStream.foreachBatch(lambda rows, batch: None)
    assert read_query(writer).sink == "foreachBatch"


def test_it_starts_notes_and_goes_on(session: Any, orders: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "ck"
    query = run(totals(session, orders), checkpoint, name="sales")
    note = json.loads((checkpoint / "_floodmark/starts/1.json").read_text())
    assert note["query_id"] == str(query.id)
    assert note["pipeline"] == "sales"
    assert note["sources"][0]["kind"] == "csv"
    assert note["spark_version"] == session.version
    assert note["conf"]["spark.sql.shuffle.partitions"] == "2"
    assert [step.kind for step in unpacked_tree(note["tree"]).stateful] == ["Aggregate"]
    # Spark does not mind the folder: the next start goes on in the same checkpoint.
    put_orders(orders, "b", ("c1", "3.00"))
    again = run(totals(session, orders), checkpoint)
    assert again.id == query.id
    assert again.exception() is None
    assert read_saved(checkpoint_files(session, str(checkpoint))).checkpoint.commit_ids == (0, 1)
    assert (checkpoint / "_floodmark/starts/2.json").exists()


def test_it_keeps_a_line_of_progress_for_each_batch(
    session: Any, orders: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "ck"
    query = run(totals(session, orders), checkpoint, name="sales")
    file, until = checkpoint / "_floodmark" / "progress.jsonl", time.monotonic() + 300
    while not (file.exists() and file.read_text()) and time.monotonic() < until:
        time.sleep(0.1)
    (line,) = [json.loads(one) for one in file.read_text().splitlines()]
    reports = [
        json.loads(one.json) if hasattr(one, "json") else one for one in query.recentProgress
    ]
    told = [one for one in reports if one["batchId"] == line["batch"]]
    assert (line["pipeline"], line["batch"]) == ("sales", 0)
    assert line["rows"] == told[0]["numInputRows"]


@pytest.mark.parametrize("option", ["checkPoint", "checkpoint_location", "checkpointLocaton"])
def test_a_misspelt_checkpoint_option_is_refused(
    session: Any, orders: Path, tmp_path: Path, option: str
) -> None:
    with pytest.raises(Refused) as error:
        start(totals(session, orders).option(option, "/tmp/elsewhere"), tmp_path / "ck")
    assert option.lower() in error.value.what
    assert "checkpointLocation" in error.value.why
    assert "--allow misspelt-checkpoint-option" in error.value.do
    assert error.value.status == 4
    assert not (tmp_path / "ck").exists()


def test_what_is_allowed_by_name_starts(session: Any, orders: Path, tmp_path: Path) -> None:
    writer = totals(session, orders).option("checkPoint", "/tmp/elsewhere")
    run(writer, tmp_path / "ck", allow=["misspelt-checkpoint-option"])
    assert (tmp_path / "ck" / "commits" / "0").exists()


def test_an_unknown_name_to_allow_is_a_misspelling(
    session: Any, orders: Path, tmp_path: Path
) -> None:
    with pytest.raises(WrongUse, match="unknown name"):
        start(totals(session, orders), tmp_path / "ck", allow=["everything"])
    assert "checkpoint-in-use" in names_to_allow()


def test_a_second_checkpoint_on_the_writer_is_refused(
    session: Any, orders: Path, tmp_path: Path
) -> None:
    writer = totals(session, orders).option("checkpointLocation", str(tmp_path / "other"))
    with pytest.raises(Refused, match="the pipeline's is"):
        start(writer, tmp_path / "ck")
    run(writer, tmp_path / "other")  # the same one twice is no contradiction


def test_a_checkpoint_in_use_is_refused_and_free_after_the_stop(
    session: Any, orders: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "ck"
    first = start(totals(session, orders, processingTime="1 second"), checkpoint)
    with pytest.raises(Refused, match="is in use by") as error:
        start(totals(session, orders), checkpoint)
    assert "--allow checkpoint-in-use" in error.value.do
    assert (checkpoint / LEASE).exists()
    first.stop()
    run(totals(session, orders), checkpoint)


def test_a_socket_cannot_be_read_again(session: Any, tmp_path: Path) -> None:
    lines = session.readStream.format("socket").option("host", "127.0.0.1").option("port", 9).load()
    with pytest.raises(Refused, match="cannot be read again"):
        start(lines.writeStream.format("noop"), tmp_path / "ck")
    assert not (tmp_path / "ck").exists()


def test_a_pinned_setting_that_the_session_contradicts_is_refused(
    session: Any, orders: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "ck"
    run(totals(session, orders), checkpoint)
    session.conf.set("spark.sql.shuffle.partitions", "3")
    with pytest.raises(Refused) as error:
        start(totals(session, orders), checkpoint)
    assert error.value.what == (
        "spark.sql.shuffle.partitions is 3 in the session, but 2 in the checkpoint"
    )
    assert "floodmark repartition" in error.value.do
    session.conf.set("spark.sql.shuffle.partitions", "2")
    run(totals(session, orders), checkpoint)


def test_input_files_that_the_next_batch_needs_and_that_are_gone(
    session: Any, orders: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "ck"
    run(totals(session, orders), checkpoint)
    put_orders(orders, "b", ("c1", "3.00"))
    run(totals(session, orders), checkpoint)
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink()
    (orders / "b.csv").rename(tmp_path / "b.csv")
    with pytest.raises(Refused, match=r"1 input file .* is gone: .*b\.csv"):
        start(totals(session, orders), checkpoint)
    (tmp_path / "b.csv").rename(orders / "b.csv")
    # A file that a committed batch has read may go.
    (orders / "a.csv").unlink()
    run(totals(session, orders), checkpoint)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda rows: None, "gives nothing"),
        (lambda rows: rows, "gives a DataFrame"),
        (lambda rows: 7, "gives a int"),
    ],
)
def test_anything_else_than_a_writer_is_refused(
    session: Any, orders: Path, tmp_path: Path, make: Any, words: str
) -> None:
    with pytest.raises(WrongUse, match=words):
        start(make(read_orders(session, orders)), tmp_path / "ck")


def test_a_query_that_spark_refuses_leaves_no_half_made_checkpoint(
    session: Any, orders: Path, tmp_path: Path
) -> None:
    rows = read_orders(session, orders)
    with pytest.raises(WrongUse, match="Spark refuses the query"):
        start(rows.writeStream.outputMode("complete").format("noop"), tmp_path / "ck")
    assert not (tmp_path / "ck").exists()


def test_a_query_of_start_ends_when_another_run_takes_its_checkpoint(
    session: Any, orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "BEAT_SECONDS", 0.1)
    query = start(totals(session, orders, processingTime="1 second"), tmp_path / "ck")
    other = lease.take(open_files(str(tmp_path / "ck")), "other", None, force=True)
    try:
        assert query.awaitTermination(300), "it stops by itself"
        assert not query.isActive
        assert not other.superseded()
    finally:
        query.stop()
        other.release()


def test_a_start_in_another_thread_holds_the_lease_too(
    session: Any, orders: Path, tmp_path: Path
) -> None:
    results: list[object] = []

    def go() -> None:
        try:
            writer = totals(session, orders, processingTime="1 second")
            results.append(start(writer, tmp_path / "ck"))
        except Refused as error:
            results.append(error)

    first = threading.Thread(target=go)
    first.start()
    first.join()
    go()
    assert sorted(type(result).__name__ for result in results) == ["Refused", "StreamingQuery"]


def test_hadoops_file_systems_give_what_local_files_give(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = qualified(session, str(tmp_path / "ck"))
    local = checkpoint_files(session, location)
    conf = session._jsparkSession.sessionState().newHadoopConf()
    fs = session._jvm.org.apache.hadoop.fs.Path(location).getFileSystem(conf)
    hadoop = HadoopFiles(location, session, fs)
    assert hadoop.level().files == ()
    assert hadoop.create("offsets/0", b"v1\n{}")
    assert not hadoop.create("offsets/0", b"other")
    hadoop.write("metadata", bytes(range(256)))
    assert local.read("offsets/0") == hadoop.read("offsets/0") == b"v1\n{}"
    assert local.read("metadata") == hadoop.read("metadata") == bytes(range(256))
    # The local file system's own checksum files are hidden from Hadoop's listing.
    assert sorted(file.path for file in hadoop.list().files) == ["metadata", "offsets/0"]
    assert hadoop.level().folders == ("offsets",)
    assert hadoop.below("offsets").read("0") == b"v1\n{}"
    with pytest.raises(FileGone):
        hadoop.read("commits/0")
    hadoop.delete(["offsets/0", "offsets/1"])
    assert hadoop.level("offsets").files == ()
    (tmp_path / "ck/offsets/a\x07b").write_bytes(b"")
    assert [path for path, _ in hadoop.list().unreadable] == [r"'offsets/a\x07b'"]
    assert not hadoop.list().complete
    assert hadoop.level("offsets").files == ()
    monkeypatch.setenv("FLOODMARK_LIMITS", "metadata=255")
    with pytest.raises(OverLimit):
        hadoop.read("metadata")


class _Ended:
    """Whatever is asked of a JVM that has ended."""

    def __getattr__(self, name: str) -> Any:
        raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize(
    "ask",
    [
        lambda files: files.list(),
        lambda files: files.level(),
        lambda files: files.read("metadata"),
        lambda files: files.write("metadata", b""),
        lambda files: files.create("metadata", b""),
        lambda files: files.put("metadata", "metadata"),
        lambda files: files.delete(["metadata"]),
    ],
)
def test_storage_behind_a_jvm_that_has_ended_cannot_be_read(
    ask: Callable[[HadoopFiles], Any],
) -> None:
    with pytest.raises(CannotRead, match="Spark does not answer") as raised:
        ask(HadoopFiles("s3a://bucket/ck", _Ended(), _Ended()))
    assert lost_connection(raised.value)


def test_where_two_creates_may_both_succeed_the_one_that_stays_counts(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = qualified(session, str(tmp_path / "ck"))
    conf = session._jsparkSession.sessionState().newHadoopConf()
    fs = session._jvm.org.apache.hadoop.fs.Path(location).getFileSystem(conf)
    files = HadoopFiles(location, session, fs)
    others = "floodmark.engine.spark.hadoop.time.sleep"
    monkeypatch.setattr(others, lambda seconds: files.write("lease", b"another's"))
    assert not files.create("lease", b"mine")
    files.delete(["lease"])
    monkeypatch.setattr(others, lambda seconds: None)
    assert files.create("lease", b"mine")


def test_storage_that_refuses_a_start_is_no_wrong_use(
    session: Any, orders: Path, tmp_path: Path
) -> None:
    prepared = prepare(totals(session, orders), str(tmp_path / "ck"), CodeOrigin("sales"), NOTHING)

    def refused(_writer: Any) -> Any:
        return session._jvm.java.io.File(f"{tmp_path}/none/x").createNewFile()

    with pytest.raises(CannotRead, match="ck: the storage answered with IOException"):
        begin(prepared, starts=refused)
    assert not (tmp_path / "ck").exists()
