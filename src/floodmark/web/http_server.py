"""Listens on an address and answers there until it is stopped."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, current_thread, main_thread
from typing import Any

from floodmark.errors import WrongUse


class _Listener:
    """A bound socket that is closed at the end."""

    def __init__(self, found: socket.socket) -> None:
        self.found = found

    def __enter__(self) -> socket.socket:
        return self.found

    def __exit__(self, *_: object) -> None:
        self.found.close()


def listening(host: str, port: int) -> _Listener:
    if not 0 <= port <= 65_535:
        raise WrongUse(f"--port {port}: there is no such port", do="Give 1 to 65535.")
    name = host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((name, port))
        found.listen(128)
    except (OSError, UnicodeError) as error:
        found.close()
        words = getattr(error, "strerror", None) or str(error)
        raise WrongUse(
            f"{host}:{port}: {words}",
            "Another program listens there, or the address is not this machine's.",
            "Choose another port: --port 0 takes one that is free.",
        ) from None
    return _Listener(found)


def url_of(host: str, port: int) -> str:
    name = host.strip("[]")
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"


def answer(
    app: Any, listener: socket.socket, stop: Event | None, ready: Callable[[], None]
) -> None:
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        timeout_keep_alive=15,
        limit_concurrency=200,
        lifespan="off",
    )
    server = uvicorn.Server(config)
    # uvicorn's own handlers raise the signal again after the shutdown: a requested stop would
    # end as a failure, before the history is closed.
    server.capture_signals = lambda: _signals_stop(server)  # type: ignore[method-assign]
    if stop is not None:

        def end() -> None:
            stop.wait()
            server.should_exit = True

        Thread(target=end, name="floodmark-stop", daemon=True).start()
    ready()
    server.run(sockets=[listener])


@contextmanager
def _signals_stop(server: Any) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the server; only a process's main thread gets signals."""
    if current_thread() is not main_thread():
        yield
        return

    def end(*_: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
