"""What --input names, and lines that a socket gives: no Spark."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from floodmark import api
from floodmark.engine.drill.samples.given_input import inputs_of
from floodmark.engine.drill.samples.input_sample import InputSample
from floodmark.engine.drill.samples.line_server import LineServer
from floodmark.errors import WrongUse


def test_inputs(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "1.json").write_text("{}")
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(10)))
    given = [str(tmp_path / "files"), str(tmp_path / "rows.jsonl"), "kafka://h:9/t", "topic-1"]
    files, lines, there, own = inputs_of(given, tmp_path / "shared")
    assert files == InputSample("folder", str(tmp_path / "files"))
    portions = sorted(Path(lines.place).iterdir())
    assert [len(one.read_text().splitlines()) for one in portions] == [3, 3, 3, 1]
    assert (there, own) == (InputSample("topic", "t", "h:9"), InputSample("topic", "topic-1"))


@pytest.mark.parametrize(
    ("made", "given", "words"),
    [
        (None, "nothing/here", "no such folder or file"),
        (None, "rows.jsonl", "no such folder or file"),
        (None, "kafka://broker:9092", "kafka://HOST:PORT/TOPIC"),
        ("empty/", "empty", "has no files"),
        ("empty.jsonl", "empty.jsonl", "is empty"),
        ("bytes", "bytes", "is not text"),
    ],
)
def test_a_bad_sample_is_said_before_anything_runs(
    made: str | None, given: str, words: str, app: Path, tmp_path: Path
) -> None:
    if made and made.endswith("/"):
        (tmp_path / made).mkdir()
    elif made:
        (tmp_path / made).write_bytes(b"\xff\xfe\x00" if made == "bytes" else b"\n \n")
    place = given if "://" in given else str(tmp_path / given)
    with pytest.raises(WrongUse) as raised:
        api.drill(str(app), input=place)
    assert words in str(raised.value)


def test_a_line_server_gives_each_line_once(tmp_path: Path) -> None:
    (tmp_path / "lines").mkdir()
    for number in range(2):
        (tmp_path / "lines" / str(number)).write_text(f"line {number}\n")
    server = LineServer(tmp_path / "lines", tmp_path / "sent")
    try:
        with socket.create_connection(("127.0.0.1", server.port), 5) as reader:
            assert reader.recv(100) == b"line 0\n"
        deadline = time.monotonic() + 300
        with socket.create_connection(("127.0.0.1", server.port), 5) as reader:
            reader.settimeout(10)
            assert reader.recv(100) == b"line 1\n"
            while not (tmp_path / "sent").exists():
                assert time.monotonic() < deadline
                time.sleep(0.05)
    finally:
        server.close()
