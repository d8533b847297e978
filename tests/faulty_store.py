"""A store in a folder of this machine whose requests fail when they are told to.

fsspec opens it as `faulty://`, so that floodmark takes it for remote storage, whose every read is a
request. As before a real server, a fault comes before a request or after it has been carried out.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from faults import ChosenFaults, Fault

_REQUESTS = ("find", "ls", "info", "cat_file", "pipe_file", "put_file", "rm_file", "cp_file")


class FaultyStore(ChosenFaults):
    """One at a time: fsspec knows it by its scheme."""

    scheme = "faulty"

    def __init__(self) -> None:
        super().__init__()
        self._place = tempfile.TemporaryDirectory(prefix="floodmark-faulty-")
        self._numbers = count(1)
        self._inner = threading.local()

    def __enter__(self) -> FaultyStore:
        fsspec.register_implementation(self.scheme, _driver(self), clobber=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._place.cleanup()

    def place(self, name: str) -> str:
        return f"{self.scheme}://store/{name}-{next(self._numbers)}"

    def objects(self, place: str) -> Path:
        return Path(self._place.name) / place.partition("://")[2]

    def request(self, name: str, path: str, act: Callable[[], Any]) -> Any:
        if getattr(self._inner, "busy", False):  # a request that is made of others is one
            return act()
        fault = self.fault_of(name, path)
        if fault not in (None, Fault.DROPPED_AFTER):
            raise ConnectionError(fault)
        self._inner.busy = True
        try:
            found = act()
        finally:
            self._inner.busy = False
        if fault is not None:
            raise ConnectionError(fault)
        return found


def _driver(store: FaultyStore) -> type[LocalFileSystem]:
    class Driver(LocalFileSystem):  # type: ignore[misc]
        protocol = store.scheme
        cachable = False

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            text = str(path)
            return str(store.objects(text)) if "://" in text else text.rstrip("/")

    for name in _REQUESTS:
        setattr(Driver, name, _asking(store, name))
    return Driver


def _asking(store: FaultyStore, name: str) -> Callable[..., Any]:
    act = getattr(LocalFileSystem, name)

    def ask(fs: Any, path: str, *rest: Any, **options: Any) -> Any:
        return store.request(name, str(path), lambda: act(fs, path, *rest, **options))

    return ask
