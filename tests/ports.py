"""Ports of the loopback interface: one that a server may take, and one where nobody listens."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CHANCE = random.SystemRandom()


def free_port() -> int:
    """None of those that the system gives to connections, which could take it meanwhile."""
    while True:
        port = _CHANCE.randrange(12_000, _lowest_of_connections())
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


@contextmanager
def nobody_listens() -> Iterator[int]:
    """A port that refuses every connection: it is held, so that nobody else opens it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def _lowest_of_connections() -> int:
    try:
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    except OSError:
        return 32_768
    return max(int(text.split()[0]), 13_000)


@contextmanager
def silent_listener() -> Iterator[int]:
    """A port of this machine that takes every connection and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as door:
        yield door.getsockname()[1]
