"""Who may ask: hosts, tokens, headers, paths; and how `serve` begins with bad input."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import samples
from floodmark.api.serving import is_loopback
from floodmark.cli.main import run
from floodmark.errors import CannotRead, NotThere, WrongUse
from served import Server, serving

TOKEN = "0123456789abcdef-a-long-one"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    samples.write(tmp_path / "data" / "sales", samples.sales(5))
    (tmp_path / "secret.txt").write_text("outside")
    return tmp_path / "data"


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return str(path)


def test_a_rebound_name_is_refused(root: Path) -> None:
    with serving(root) as server:
        for host in ("evil.example", "evil.example:8460", "localhost.evil.example", "[evil]:1", ""):
            assert server.get("/api/fleet", Host=host).status in (400, 421), host
        for host in ("localhost", "localhost:99", "127.0.0.1", "[::1]:8460", "10.1.2.3:80"):
            assert server.get("/api/fleet", Host=host).status == 200, host
    with serving(root, allow_host=["streams.example"]) as server:
        assert server.get("/api/fleet", Host="streams.example").status == 200
        assert server.get("/api/fleet", Host="streams.example.evil").status == 421


def test_every_answer_carries_the_headers(root: Path) -> None:
    with serving(root) as server:
        for path in ("/", "/api/fleet", "/nothing", "/static/own/look.css", "/api/checkpoints/x"):
            headers = server.get(path).headers
            assert "default-src 'none'" in headers["content-security-policy"], path
            assert "'unsafe-eval'" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert headers["referrer-policy"] == "no-referrer"
            assert "access-control-allow-origin" not in headers
        assert server.get("/api/fleet").headers["cache-control"] == "no-store"
        assert server.get("/api/fleet", Host="evil").headers["x-frame-options"] == "DENY"


OUT = (
    "/checkpoints/../secret.txt",
    "/checkpoints/%2e%2e%2f%2e%2e%2fsecret.txt",
    "/api/checkpoints/..%2f..%2fsecret.txt",
    "/api/checkpoints/" + "a" * 10_000,
    "/api/checkpoints/0123456789abcdef",
    "/api/checkpoints/%00",
    "/static/own/../../../../secret.txt",
    "/static/own/%2e%2e/%2e%2e/app.py",
    "/static/own/..%2fapp.py",
)


def test_no_path_leads_out(root: Path) -> None:
    with serving(root) as server:
        for path in OUT:
            answer = server.get(path)
            assert answer.status in (400, 404, 422), path
            assert b"outside" not in answer.body
            assert b"import" not in answer.body


def test_only_reading(root: Path) -> None:
    with serving(root) as server:
        assert server.post("/api/fleet", b"{}").status == 405


def test_no_token_is_asked_for_where_none_is_needed(root: Path) -> None:
    with serving(root) as server:
        answer = server.get("/login")
        assert (answer.status, answer.headers["location"]) == (303, "/")


def test_a_token_is_asked_for(root: Path, token_file: str) -> None:
    with serving(root, token_file=token_file) as server:
        assert server.get("/api/fleet").status == 401
        assert server.get("/api/fleet", Authorization="Bearer wrong").status == 401
        assert server.get("/api/fleet", Authorization=f"Bearer {TOKEN}").status == 200
        assert server.get("/api/fleet", Cookie="floodmark=forged").status == 401
        assert server.get("/api/fleet", Cookie=f"floodmark={TOKEN}").status == 401
        assert server.get("/openapi.json").status == 401
        assert server.get(f"/api/fleet?token={TOKEN}").status == 401
        page = server.get("/", Accept="text/html")
        assert (page.status, page.headers["location"]) == (303, "/login")
        assert b"password" in server.get("/login").body
        assert server.get("/static/own/look.css").status == 200


def test_a_browser_gets_a_cookie_for_the_token(root: Path, token_file: str) -> None:
    with serving(root, token_file=token_file) as server:
        wrong = server.post("/login", b"token=wrong")
        assert wrong.status == 401
        assert b"not the token" in wrong.body
        assert server.post("/login", b"token=" + b"x" * 100_000).status == 401
        assert server.post("/login", b"\xff\xfe").status == 401
        right = server.post("/login", f"token={TOKEN}".encode())
        assert right.status == 303
        cookie = right.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert TOKEN not in cookie
        assert server.get("/api/fleet", Cookie=cookie.split(";")[0]).status == 200


def test_other_machines_only_with_a_token(root: Path, token_file: str, tmp_path: Path) -> None:
    with (
        pytest.raises(WrongUse, match="the whole network reads these pages"),
        serving(root, host="0.0.0.0"),
    ):
        pass
    with serving(root, host="0.0.0.0", token_file=token_file) as server:
        near = Server(server.url.replace("0.0.0.0", "127.0.0.1"))
        assert near.get("/api/fleet").status == 401
        assert near.get("/api/fleet", Authorization=f"Bearer {TOKEN}").status == 200
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "a.b")] == [
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("text", ["", "short", "two words " * 5])
def test_a_token_that_is_none(root: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad"
    path.write_text(text)
    with pytest.raises(WrongUse, match="too short"), serving(root, token_file=str(path)):
        pass


def test_a_token_file_that_is_not_there(root: Path, tmp_path: Path) -> None:
    with pytest.raises(CannotRead, match="No such file"), serving(root, token_file="/nowhere/t"):
        pass


def test_a_root_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotThere), serving(tmp_path / "nowhere"):
        pass
    assert run(["serve", str(tmp_path / "nowhere"), "--port", "0"]) == 3
    told = capsys.readouterr().err
    assert "no such file or folder" in told
    assert "Traceback" not in told


def test_an_empty_root_is_served(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert server.get("/api/fleet").json["cards"] == []
        assert server.get("/").status == 200


def test_a_port_in_use(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(["serve", str(root), "--port", str(port), "--no-history"]) == 2
    told = capsys.readouterr().err
    assert "in use" in told
    assert "--port 0" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "70000"], "no such port"),
        (["--host", "no such host", "--token-file", "TOKEN"], "no such host"),
        (["--interval", "0"], "too short"),
        (["--keep-days", "-1"], "nothing would be kept"),
        (["--keep-days", "nan"], "nothing would be kept"),
        (["--kafka-config", "x"], "there is no Kafka to ask"),
        (["--commit-to-group", "spark-{name}"], "needs the brokers"),
        (["--sources", "--commit-to-group", "spark-{name}"], "needs the brokers"),
        (["--kafka", "127.0.0.1:1", "--commit-to-group", "spark"], "all streams would share"),
        (["--notify", "ftp://somewhere"], "not an address for posting"),
        (["--notify", "file:///etc/passwd"], "not an address for posting"),
        (["--notify", "http://me:secret@[::1"], "not an address for posting"),
        (["--notify", "http://host:99999/"], "not an address for posting"),
        (["--interval", "inf"], "too long"),
        (["--patience", "1e300"], "too long"),
        (["--keep-days", "inf"], "too long"),
        (["--history", "/proc/nothing/here.sqlite"], "cannot be kept there"),
    ],
)
def test_wrong_options_end_with_a_sentence(
    root: Path,
    token_file: str,
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [token_file if part == "TOKEN" else part for part in arguments]
    base = ["serve", str(root)] + ([] if "--port" in given else ["--port", "0"])
    history = [] if "--history" in given else ["--no-history"]
    assert run([*base, *history, *given]) in (2, 3)
    told = capsys.readouterr().err
    assert words in told
    assert "Traceback" not in told


def test_a_history_that_is_no_database(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "history.sqlite"
    path.write_bytes(b"no database at all" * 100)
    assert run(["serve", str(root), "--port", "0", "--history", str(path)]) == 3
    assert "--no-history" in capsys.readouterr().err
    assert path.read_bytes().startswith(b"no database")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_that_was_asked_for_is_no_failure(root: Path, number: int) -> None:
    main = "from floodmark.cli.main import main; main()"
    command = [sys.executable, "-c", main, "serve", str(root), "--port", "0", "--no-history"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        url = server.stderr.readline().rsplit(" at ", 1)[1].strip()
        assert Server(url).get("/api/health").status == 200
        server.send_signal(number)
        _, told = server.communicate(timeout=300)
        assert server.returncode == 0, told
        assert "Traceback" not in told


def test_it_ends_although_its_storage_is_silent() -> None:
    """Threads that wait for such storage would hold up the end of the process for ever."""
    main = (
        "import floodmark.api.serving as serving; serving._ROOT_SECONDS = 0.3; "
        "from floodmark.cli.main import main; main()"
    )
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        root = f"http://me:hunter2hunter2@127.0.0.1:{silent.getsockname()[1]}/data"
        command = [sys.executable, "-c", main, "serve", root, "--port", "0", "--no-history"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            waits, serves = server.stderr.readline(), server.stderr.readline()
            assert "does not answer yet" in waits
            assert Server(serves.rsplit(" at ", 1)[1].strip()).get("/").status == 200
            server.send_signal(signal.SIGTERM)
            try:
                _, told = server.communicate(timeout=120)
            finally:
                server.kill()
        assert server.returncode == 0, told
        assert "hunter2" not in waits + serves + told
