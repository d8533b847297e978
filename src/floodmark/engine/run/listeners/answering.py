"""Answers HTTP requests beside a run, in a thread of its own."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from floodmark.errors import WrongUse


class Reply(NamedTuple):
    status: int
    content_type: str
    body: str


_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NOT_HERE = Reply(403, "text/plain; charset=utf-8", "Ask for 127.0.0.1 or localhost.\n")


@contextlib.contextmanager
def answering(reply: Callable[[str], Reply], host: str, port: int, option: str) -> Iterator[int]:
    """Serve `reply`, which gets the requested path; yield the port, also where 0 chose one."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # a silent client must not keep a thread

        def do_GET(self) -> None:
            found = reply(self.path) if self._is_meant() else _NOT_HERE
            body = found.body.encode()
            self.send_response(found.status)
            self.send_header("Content-Type", found.content_type)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

        def _is_meant(self) -> bool:
            """Whether a request uses a loopback name: another site's page would use its own."""
            if host not in _LOOPBACK:
                return True
            name = (self.headers.get("Host") or host).strip().lower()
            return re.sub(r":\d+$", "", name).strip("[]") in _LOOPBACK

        def log_message(self, format: str, *arguments: object) -> None:
            return

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except (OSError, OverflowError) as error:
        words = getattr(error, "strerror", None) or error
        raise WrongUse(
            f"--{option}-port {port}: cannot listen on {host}: {words}",
            do=f"Choose a free port, or another --{option}-host.",
        ) from None
    server.daemon_threads = True
    name = f"floodmark-{option}"
    threading.Thread(target=server.serve_forever, name=name, daemon=True).start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
