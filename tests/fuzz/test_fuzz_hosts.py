"""A checkpoint that names hosts everywhere: no verb connects to one that the user has not named."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz_commands import EVERY
from fuzz_places import GOLDEN, start_note

from floodmark.cli.main import run
from floodmark.storage.untrusted_places import opener

Capture = pytest.CaptureFixture[str]


class Stranger:
    """A server that remembers what it is sent, and answers nothing."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(0.2)
                try:
                    self.heard.append(connection.recv(1 << 16))
                except OSError:
                    self.heard.append(b"")

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    server = Stranger()
    yield server
    server.close()


def _named(place: Path, name: str, address: str) -> Path:
    """A golden checkpoint whose log, notes and snapshot name an address."""
    folder = place / "cp"
    shutil.copytree(GOLDEN / "4.2" / name / "checkpoint", folder)
    for entry in folder.glob("sources/*/[0-9]*"):
        version, *lines = entry.read_text().split("\n")
        files = [json.loads(line) for line in lines if line.startswith("{")]
        if files and "path" in files[0]:
            moved = [{**file, "path": f"{address}/in/{at}.json"} for at, file in enumerate(files)]
            entry.write_text("\n".join([version, *map(json.dumps, moved)]))
            (entry.parent / f".{entry.name}.crc").unlink(missing_ok=True)
    note = json.loads(start_note(json.loads((folder / "metadata").read_text())["id"], str(place)))
    broker = address.partition("://")[2]
    options = {"path": f"{address}/table", "kafka.bootstrap.servers": broker, "subscribe": "orders"}
    note |= {"sink": "delta", "sink_options": {"path": f"{address}/out"}}
    note["sources"] = [{"kind": kind, "options": options} for kind in ("kafka", "delta", "json")]
    (folder / "_floodmark/starts").mkdir(parents=True)
    (folder / "_floodmark/starts/1.json").write_text(json.dumps(note))
    return folder


@pytest.mark.parametrize("name", ["files", "delta"])
@pytest.mark.parametrize("scheme", ["http", "ftp", "webhdfs"])
def test_no_verb_asks_a_host_that_only_a_file_names(
    scheme: str, name: str, tmp_path: Path, stranger: Stranger, capsys: Capture
) -> None:
    folder = _named(tmp_path, name, f"{scheme}://127.0.0.1:{stranger.port}")
    run(["backup", str(folder), str(tmp_path / "repo"), "--execute"])
    (snapshot,) = (tmp_path / "repo/snapshots").glob("*.json")
    _say(snapshot, f"{scheme}://127.0.0.1:{stranger.port}/earlier")
    places = {"place": tmp_path, "cp": folder, "new": tmp_path / "new", "repo": tmp_path / "repo"}
    for command in sorted(set(EVERY)):
        if "--sources" in command or "{plan}" in command:
            continue
        arguments = [part.format(**places) for part in command.split(" ")]
        status = run(arguments)
        printed = "".join(capsys.readouterr())
        assert status != 70, (command, printed)
        assert not stranger.heard, (command, printed)


def _say(snapshot: Path, location: str) -> None:
    from floodmark.storage.repository import _digest

    value = {**json.loads(snapshot.read_text()), "location": location}
    body = {key: item for key, item in value.items() if key not in ("digest", "floodmark")}
    snapshot.write_text(json.dumps({**value, "digest": _digest(body)}))


def test_sources_are_asked_where_the_user_says_so_and_get_no_options(
    tmp_path: Path, stranger: Stranger, capsys: Capture
) -> None:
    folder = _named(tmp_path, "files", f"http://127.0.0.1:{stranger.port}")
    secret = '{"headers":{"Authorization":"Hu5h9001qZ"}}'
    run(["doctor", str(folder), "--sources", "--storage", f"client_kwargs={secret}"])
    assert stranger.heard
    assert not any(b"Hu5h9001qZ" in data for data in stranger.heard)


def test_hosts_that_the_user_named_are_asked(stranger: Stranger) -> None:
    host = f"http://127.0.0.1:{stranger.port}"
    opened = opener([f"{host}/checkpoints/a"], None)
    assert opened(f"{host}/in").root == f"{host}/in"
    for place in ("/data/in", "file:///data/in", "memory://x/in"):
        assert opened(place).root == place
