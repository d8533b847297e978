"""A proxy before an HTTP server that does what networks and busy stores do: fails now and then.

It passes requests on byte for byte, and asks a function what to do with each: nothing, or one of
the faults of faults.py. A fault that comes `after` has reached the server: only its answer is lost.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from faults import ChosenFaults, Fault

_SLOW_SECONDS = 0.3
_WAIT_SECONDS = 30.0
_ERROR = "<Error><Code>{}</Code><Message>by the proxy</Message></Error>"


class FaultProxy(ChosenFaults):
    def __init__(self, server_port: int) -> None:
        super().__init__()
        self._server_port = server_port
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(_WAIT_SECONDS)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self) -> None:
                body = self._body()
                fault = proxy.fault_of(self.command, self.path)
                if fault is Fault.DROPPED:
                    self._hang_up()
                    return
                if fault in (Fault.ERROR_500, Fault.ERROR_503):
                    self._refuse(fault)
                    return
                if fault is Fault.SLOW:
                    time.sleep(_SLOW_SECONDS)
                status, headers, answer = self._asked(body)
                if fault is Fault.DROPPED_AFTER:
                    self._hang_up()
                    return
                self._answer(status, headers, answer, cut=fault is Fault.CUT)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = pass_on  # noqa: N815

            def _body(self) -> bytes:
                if "chunked" in self.headers.get("Transfer-Encoding", ""):
                    parts = []
                    while size := int(self.rfile.readline().split(b";")[0], 16):
                        parts.append(self.rfile.read(size))
                        self.rfile.readline()
                    self.rfile.readline()
                    return b"".join(parts)
                if self.headers.get("Expect", "").lower() == "100-continue":
                    pass  # the base class has answered it
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))

            def _asked(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
                server = http.client.HTTPConnection(
                    "127.0.0.1", proxy._server_port, timeout=_WAIT_SECONDS
                )
                try:
                    server.putrequest(
                        self.command, self.path, skip_host=True, skip_accept_encoding=True
                    )
                    for name, value in self.headers.items():
                        if name.lower() not in ("transfer-encoding", "expect", "connection"):
                            server.putheader(name, value)
                    if "Content-Length" not in self.headers and body:
                        server.putheader("Content-Length", str(len(body)))
                    server.endheaders(body or None)
                    found = server.getresponse()
                    return found.status, found.getheaders(), found.read()
                finally:
                    server.close()

            def _answer(
                self, status: int, headers: list[tuple[str, str]], body: bytes, cut: bool
            ) -> None:
                self.send_response_only(status)
                said = self.command == "HEAD"
                for name, value in headers:
                    if name.lower() in ("transfer-encoding", "connection"):
                        continue
                    if name.lower() == "content-length" and not said:
                        continue
                    self.send_header(name, value)
                if not said:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if cut and not said:
                    self.wfile.write(body[: len(body) // 2])
                    self._hang_up()
                elif not said:
                    self.wfile.write(body)

            def _refuse(self, fault: Fault) -> None:
                status, code = (
                    (500, "InternalError") if fault is Fault.ERROR_500 else (503, "SlowDown")
                )
                body = b"" if self.command == "HEAD" else _ERROR.format(code).encode()
                self._answer(status, [("Content-Type", "application/xml")], body, cut=False)

            def _hang_up(self) -> None:
                self.close_connection = True
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)

            def log_message(self, *_: Any) -> None:
                """Nothing: pytest shows what a test says."""

        return Handler
