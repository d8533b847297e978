"""Redirects files that a drilled pipeline writes with Python to the run; refuses other effects.

A file that the code writes becomes a file of the run, and the drill compares its lines like rows.
An audit hook refuses what does not go through these functions: other programs, connections to
other machines, changes of files outside the run.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import io
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from floodmark.engine.app.effects.file_writes import REFUSED, WRITES, absolute_path
from floodmark.engine.app.patching import Patches
from floodmark.engine.app.script_calls import Watch
from floodmark.engine.drill.doors.places import Places
from floodmark.engine.drill.doors.spark_doors import unseen
from floodmark.engine.drill.doors.sql_doors import is_in_memory
from floodmark.engine.drill.killing.marks import Marks
from floodmark.engine.drill.run_spec import SinkNote

_REFUSED = {
    **REFUSED,
    "os.chown": "changes a file's owner",
    "os.removexattr": "changes a file's attributes",
    "os.setxattr": "changes a file's attributes",
    "os.utime": "changes a file's times",
    "socket.connect": "connects to",
    "socket.sendto": "sends to",
}
_NO_PATH = ("socket.", "os.system", "subprocess.", "os.fork", "os.kill", "os.exec", "os.spawn")
_DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"})
_CLIENTS = (
    ("confluent_kafka", "Producer"),
    ("confluent_kafka", "SerializingProducer"),
    ("MySQLdb", "connect"),
    ("pyodbc", "connect"),
    ("oracledb", "connect"),
    ("pymssql", "connect"),
    ("duckdb", "connect"),
    ("duckdb", "execute"),
    ("duckdb", "query"),
    ("duckdb", "sql"),
    ("adbc_driver_postgresql.dbapi", "connect"),
)
"""Libraries that reach a sink with native code, which Python's own audit does not see."""
_NATIVE_FILES = (
    ("pyarrow.parquet", "write_table", "where"),
    ("pyarrow.parquet", "ParquetWriter", "where"),
    ("pyarrow.parquet", "write_to_dataset", "root_path"),
    ("pyarrow.dataset", "write_dataset", "base_dir"),
    ("pyarrow.csv", "write_csv", "output_file"),
    ("deltalake", "write_deltalake", "table_or_uri"),
)


class _Looking(threading.local):
    """Marks, in this thread, that a door itself asks the system."""

    now = False

    def __enter__(self) -> None:
        self.now = True

    def __exit__(self, *_: object) -> None:
        self.now = False


class FileDoors:
    def __init__(self, places: Places, marks: Marks, watch: Watch) -> None:
        self._places = places
        self._marks = marks
        self._watch = watch
        self._looking = _Looking()
        self.enabled = False
        """While the application is built, none of its effects happens."""

    def install(self, patches: Patches) -> None:
        opening = self._opening(builtins.open)
        patches.set(builtins, "open", opening)
        patches.set(io, "open", opening)
        for name in ("makedirs", "mkdir"):
            patches.wrap(os, name, self._making)
        for name in ("remove", "unlink"):
            patches.wrap(os, name, self._of_own)
        for name in ("rename", "replace"):
            patches.wrap(os, name, self._of_own)
        for name in ("copy", "copy2", "copyfile", "move"):
            patches.wrap(shutil, name, self._of_own)
        for name in ("stat", "lstat", "access"):
            patches.wrap(os, name, self._asking)
        patches.wrap(os, "listdir", self._listing)
        patches.wrap(os, "scandir", self._scanning)
        sys.addaudithook(self._audit)

    def refuse_clients(self, patches: Patches, text: str) -> None:
        """Refuse clients of libraries that are loaded, or that the application names."""
        for module, name in _CLIENTS:
            if module in sys.modules or module in text:
                with contextlib.suppress(ImportError):
                    found = importlib.import_module(module)
                    patches.set(found, name, _refused(f"what {module}.{name} reaches"))
        for module, name, _ in _NATIVE_FILES:
            if module in sys.modules or module.partition(".")[0] in text or "pandas" in text:
                with contextlib.suppress(ImportError):
                    patches.wrap(importlib.import_module(module), name, self._native(name))

    def _native(self, words: str) -> Callable[[Any], Any]:
        def wrapper(original: Any) -> Any:
            def write(*given: Any, **named: Any) -> Any:
                if self.enabled and self._watch.is_users_call():
                    raise unseen(f"what {words}() writes")
                return original(*given, **named)

            return write

        return wrapper

    def _applies(self) -> bool:
        return self.enabled and self._watch.is_users_call()

    def _opening(self, original: Any) -> Any:
        def opened(file: Any, mode: str = "r", *given: Any, **named: Any) -> Any:
            path = absolute_path(file)
            if path is None or not (self.enabled and self._watch.is_users_call()):
                return original(file, mode, *given, **named)
            if self._is_free(path):
                return original(file, mode, *given, **named)
            own = self._places.of_file(path)
            if any(sign in mode for sign in "wax+"):
                self._bring(path, own, mode)
                self._places.note(SinkNote(path, str(own), "lines", by="function"))
                return original(own, mode, *given, **named)
            with self._looking:
                found = self._own_or_real(file)
            return original(found, mode, *given, **named)

        return opened

    def _bring(self, real: str, own: Path, mode: str) -> None:
        own.parent.mkdir(exist_ok=True)
        if "w" not in mode and not own.exists() and Path(real).is_file():
            shutil.copyfile(real, own)

    def _making(self, original: Any) -> Any:
        def make(path: Any, *given: Any, **named: Any) -> None:
            absolute = absolute_path(path)
            # All files of the run are in one folder: no other folder is needed.
            if not self._applies() or absolute is None or self._is_free(absolute):
                original(path, *given, **named)

        return make

    def _of_own(self, original: Any) -> Any:
        def act(*given: Any, **named: Any) -> Any:
            if not self._applies():
                return original(*given, **named)
            if any(one is not None for name, one in named.items() if name.endswith("dir_fd")):
                raise self._watch.refuse(f"{original.__name__} in an open folder: {given[0]}")
            own = []
            for one in given:
                path = absolute_path(one)
                if path is None or self._is_free(path):
                    own.append(one)
                    continue
                place = self._places.of_file(path)
                is_source = len(given) == 1 or one is not given[-1]
                if is_source and not place.exists() and Path(path).is_file():
                    if not original.__name__.startswith("copy"):
                        raise self._watch.refuse(
                            f"{original.__name__} of a file that was there before: {path}"
                        )
                    own.append(one)
                    continue
                if original.__name__ not in ("remove", "unlink") and one is given[-1]:
                    self._places.note(SinkNote(path, str(place), "lines", by="function"))
                own.append(place)
            found = original(*own, **named)
            self._marks.wrote()
            return found

        return act

    def _asking(self, original: Any) -> Any:
        """Wrap a question for a file's existence or size: a written file is the run's own."""

        def ask(path: Any, *given: Any, **named: Any) -> Any:
            if not self._looking.now and named.get("dir_fd") is None and self._applies():
                with self._looking:
                    path = self._own_or_real(path)
            return original(path, *given, **named)

        return ask

    def _own_or_real(self, path: Any) -> Any:
        absolute = absolute_path(path)
        if absolute is None or self._is_free(absolute):
            return path
        own = self._places.of_file(absolute)
        return own if own.exists() else self._places.in_sink(absolute) or path

    def _listing(self, original: Any) -> Any:
        def listed(path: Any = ".") -> Any:
            if self._looking.now or not self._applies():
                return original(path)
            with self._looking:
                own, path = self._written_in(path), self._own_or_real(path)
            try:
                found = original(path)
            except FileNotFoundError:
                if not own:
                    raise
                return sorted(own)
            return [*found, *sorted(own.difference(found))]

        return listed

    def _scanning(self, original: Any) -> Any:
        """Wrap scandir, which glob and walk use: its entries have real paths, not the run's."""

        def scanned(path: Any = ".") -> Any:
            if not self._looking.now and self._applies():
                with self._looking:
                    own, real = self._written_in(path), path
                    path = self._own_or_real(path)
                if own:
                    raise unseen(f"what it finds by listing {_shown(real)}, where it writes")
            return original(path)

        return scanned

    def _written_in(self, folder: Any) -> set[str]:
        absolute = absolute_path(folder)
        files = [one for one in self._places.notes if one.kind == "lines"]
        return {
            Path(one.real).name
            for one in files
            if str(Path(one.real).parent) == absolute and Path(one.place).exists()
        }

    def _is_free(self, path: str) -> bool:
        # A link inside the run may lead out of it.
        return path in _DEVICES or Path(os.path.realpath(path)).is_relative_to(self._places.folder)

    def _are_free(self, event: str, arguments: tuple[Any, ...]) -> bool:
        """Whether all paths of an event belong to the run, such as both paths of a rename."""
        if event.startswith(_NO_PATH):
            return False
        if event == "sqlite3.connect" and is_in_memory(arguments[0]):
            return True
        paths = [one for one in map(absolute_path, arguments) if one is not None]
        return bool(paths) and all(self._is_free(one) for one in paths)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.enabled or (event != "open" and event not in _REFUSED):
            return
        if event == "open":
            path, _, flags = arguments
            if not (isinstance(flags, int) and flags & WRITES) or isinstance(path, int):
                return
            words, arguments = "writes", (path,)
        else:
            path, words = (arguments[0] if arguments else ""), _REFUSED[event]
            if event.startswith("socket."):
                path = arguments[1]
        if not self._watch.is_users_call() or self._are_free(event, arguments):
            return
        raise self._watch.refuse(f"the pipeline {words} {_shown(path)}")


def _refused(words: str) -> Any:
    def refuse(*_given: Any, **_named: Any) -> Any:
        raise unseen(words)

    return refuse


def _shown(path: Any) -> str:
    if isinstance(path, str | bytes | os.PathLike):
        return os.fsdecode(path)
    return ":".join(map(str, path)) if isinstance(path, list | tuple) else str(path)
