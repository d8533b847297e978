"""A proxy before an HTTP server that does what networks and busy stores do: fails now and then.

It passes requests on byte for byte, and asks a function what to do with each: nothing, or one of
the faults of faults.py. A fault that comes `after` has reached the server: only its answer is lost.

Both connections of a client are kept, its own and the one to the server, so that a request costs
little more than without a proxy.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import BinaryIO

from faults import ChosenFaults, Fault

_SLOW_SECONDS = 0.3
_WAIT_SECONDS = 30.0
_ERROR = "<Error><Code>{}</Code><Message>by the proxy</Message></Error>"
_REFUSED = {
    Fault.ERROR_500: (b"HTTP/1.1 500 Internal Server Error\r\n", "InternalError"),
    Fault.ERROR_503: (b"HTTP/1.1 503 Slow Down\r\n", "SlowDown"),
}
# About one connection only, or about a form of the body that the proxy has undone.
_OWN = (b"transfer-encoding", b"content-length", b"connection", b"expect", b"keep-alive")


class FaultProxy(ChosenFaults):
    def __init__(self, server_port: int) -> None:
        super().__init__()
        self.server = ("127.0.0.1", server_port)
        self._tcp = _Tcp(self)
        self._thread = threading.Thread(target=self._tcp.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._tcp.server_address[1]}"

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._tcp.shutdown()
        self._tcp.server_close()
        self._thread.join(_WAIT_SECONDS)


class _Tcp(ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Client)

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is nothing to tell of."""


@dataclass(frozen=True)
class _Message:
    """A request or an answer, as a whole: its body is no longer in chunks."""

    first: bytes
    lines: list[bytes]
    body: bytes = b""
    length: bytes | None = None
    """What it says of its body's length, which the answer to HEAD has not."""

    @property
    def method(self) -> str:
        return self.first.split(b" ", 1)[0].decode()

    @property
    def head(self) -> bytes:
        length = [b"Content-Length: ", self.length, b"\r\n"] if self.length is not None else []
        return b"".join([self.first, *self.lines, *length, b"\r\n"])


class _Client(StreamRequestHandler):
    """One client's connection, from its first request to its last."""

    disable_nagle_algorithm = True
    server: _Tcp

    def handle(self) -> None:
        self._store: tuple[socket.socket, BinaryIO] | None = None
        try:
            while self._passed_on():
                pass
        finally:
            self._drop_store()

    def _passed_on(self) -> bool:
        """Whether the connection is still open after one more request."""
        request = _read(self.rfile, go_on=self.wfile)
        if request is None:
            return False
        path = request.first.split(b" ")[1].decode("latin-1")
        fault = self.server.proxy.fault_of(request.method, path)
        if fault is Fault.DROPPED:
            return self._hung_up()
        if fault in _REFUSED:
            self.wfile.write(_refusal(fault, request))
            return True
        if fault is Fault.SLOW:
            time.sleep(_SLOW_SECONDS)
        answer = self._asked(request)
        if fault is Fault.DROPPED_AFTER:
            return self._hung_up()
        if fault is Fault.CUT:
            whole = answer.body or answer.head
            before = answer.head if answer.body else b""
            self.wfile.write(before + whole[: len(whole) // 2])
            return self._hung_up()
        self.wfile.write(answer.head + answer.body)
        return True

    def _hung_up(self) -> bool:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        return False

    def _asked(self, request: _Message) -> _Message:
        connection, answers = self._open_store()
        connection.sendall(request.head + request.body)
        found = _read(answers, asked=request.method)
        if found is None:
            raise ConnectionError("the server hung up")
        return found

    def _open_store(self) -> tuple[socket.socket, BinaryIO]:
        """The kept connection; another one if the server has closed it meanwhile."""
        if self._store is not None and select.select([self._store[0]], [], [], 0)[0]:
            self._drop_store()
        if self._store is None:
            made = socket.create_connection(self.server.proxy.server, timeout=_WAIT_SECONDS)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._store = made, made.makefile("rb")
        return self._store

    def _drop_store(self) -> None:
        if self._store is not None:
            connection, answers = self._store
            self._store = None
            answers.close()
            connection.close()


def _refusal(fault: Fault, request: _Message) -> bytes:
    status, code = _REFUSED[fault]
    body = b"" if request.method == "HEAD" else _ERROR.format(code).encode()
    lines = [b"Content-Type: application/xml\r\n"]
    return _Message(status, lines, length=b"%d" % len(body)).head + body


def _read(stream: BinaryIO, asked: str = "", go_on: BinaryIO | None = None) -> _Message | None:
    """The next message of a connection, or None at its end; `asked`: it answers this method."""
    first = stream.readline()
    if not first.strip():
        return None
    kept, said = [], {}
    while (line := stream.readline()).strip():
        name, _, value = line.partition(b":")
        said[name.lower()] = value.strip()
        if name.lower() not in _OWN:
            kept.append(line)
    if go_on is not None and said.get(b"expect", b"").lower() == b"100-continue":
        go_on.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if asked == "HEAD":
        return _Message(first, kept, length=said.get(b"content-length"))
    if b"chunked" in said.get(b"transfer-encoding", b"").lower():
        body = b"".join(_chunks(stream))
    elif b"content-length" in said or not asked:
        body = _exactly(stream, int(said.get(b"content-length", 0)))
    else:
        body = b"" if first.split()[1] in (b"204", b"304") else stream.read()
    has_length = bool(asked) or bool(body) or b"content-length" in said
    return _Message(first, kept, body, b"%d" % len(body) if has_length else None)


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while size := int(stream.readline().split(b";")[0], 16):
        yield _exactly(stream, size)
        stream.readline()
    while stream.readline().strip():
        pass  # lines behind the last chunk say nothing that a test looks at


def _exactly(stream: BinaryIO, size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise ConnectionError("a message ended early")
    return found
