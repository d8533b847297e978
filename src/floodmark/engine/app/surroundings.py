"""Sets up a script's surroundings: its folder on sys.path, its modules, arguments, `__main__`.

They last as long as the `with`, so that a module imported by the old code is not mistaken for
the module of the same name that the new code has imported, from wherever that was.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import sysconfig
import threading
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.app.script_text import ScriptText
from floodmark.errors import WrongUse

APPLICATION_MODULE = "floodmark_application_"
"""How the module of a file with pipelines begins; the rest is a digest of its path."""
_PYTHONPATH = "PYTHONPATH"
_INSTALLED = ("site-packages", "dist-packages")
_OF_SPARK = frozenset({"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"})
"""What Spark puts into the environment of this process when it starts."""
_NOT_A_SCRIPTS = frozenset({"__main__", "floodmark", "pyspark", "py4j"})


@dataclass(frozen=True)
class _Home:
    """Code that has surroundings of its own."""

    folders: tuple[str, ...]
    known: frozenset[str]
    """The modules that were there before it."""
    before: _Before

    def modules(self) -> dict[str, types.ModuleType]:
        """Return its modules: those in its folders, and others that it has imported."""
        return {
            name: module
            for name, module in list(sys.modules.items())
            if name.partition(".")[0] not in _NOT_A_SCRIPTS
            and any(
                _is_inside(place, self.folders) or (name not in self.known and is_users_file(place))
                for place in _places(module)
            )
        }


_homes: list[_Home] = []
_revisions: list[tuple[Path, Path]] = []
"""Working trees of git, each with the folder that has the same files as of another revision."""


@contextlib.contextmanager
def in_revision(tree: Path, folder: Path) -> Iterator[None]:
    """Let code find in `folder` what it would find in a working tree, for example by PYTHONPATH."""
    _revisions.append((tree.resolve(), folder.resolve()))
    try:
        yield
    finally:
        _revisions.pop()


def require_revision() -> None:
    """Refuse old code that has imported a module of the working tree, which is of today."""
    for tree, _ in _revisions:
        for name, module in _homes[-1].modules().items() if _homes else ():
            for place in _places(module):
                if Path(place).resolve().is_relative_to(tree) and is_users_file(place):
                    raise WrongUse(
                        f"the old code imports {name} from the working tree: {place}",
                        "That is the module of today: what it did in the revision would not be "
                        "compared.",
                        "Check the revision out into a folder of its own (git worktree add), and "
                        "give its file: --old OLD.py",
                    )


def _of_revision(entry: str) -> str:
    place = Path(entry).resolve()
    for tree, folder in _revisions:
        if place.is_relative_to(tree) and (then := folder / place.relative_to(tree)).exists():
            return str(then)
    return entry


@contextlib.contextmanager
def at_home(source: ScriptText, options: ScriptOptions) -> Iterator[types.ModuleType]:
    beside = (_of_revision(one) for one in _py_files(options.py_files))
    folders = (str(source.path.resolve().parent), *beside)
    module = types.ModuleType("__main__")
    module.__file__ = source.file
    module.__builtins__ = __builtins__  # type: ignore[attr-defined]
    with surroundings(folders):
        sys.modules["__main__"] = module
        sys.argv = [str(source.path), *options.arguments]
        # As with `python script.py`, the script's folder comes first.
        sys.path[:0] = folders
        share_with_workers(folders)
        yield module


@contextlib.contextmanager
def surroundings(folders: tuple[str, ...]) -> Iterator[None]:
    """Let code import its own modules, and take back afterwards what it did to this process.

    Other code whose surroundings last meanwhile does not show: neither the modules that it
    imported, nor what it did to the module path, the working directory and the environment.
    """
    before = _Before()
    others: dict[str, types.ModuleType] = {}
    for outer in _homes:
        others |= outer.modules()
    for name in others:
        del sys.modules[name]
    if _homes:
        _homes[0].before.restore_surroundings()
    sys.path[:] = [_of_revision(one) for one in sys.path]
    home = _Home(folders, frozenset(sys.modules), before)
    _homes.append(home)
    try:
        yield
    finally:
        _homes.pop()
        for name in home.modules():
            del sys.modules[name]
        sys.modules.pop("floodmark.auto", None)  # its import has an effect
        sys.modules.update(others)
        before.restore()


def fingerprint_with_modules(fingerprint: str) -> str:
    """Add to a file's fingerprint the modules that its code has imported so far, by content."""
    found = hashlib.sha256(fingerprint.encode())
    for name, module in sorted(_homes[-1].modules().items() if _homes else ()):
        file = Path(str(getattr(module, "__file__", None) or ""))
        # A pipeline's own file is a module as well, whose name tells its path.
        if not name.startswith(APPLICATION_MODULE):
            found.update(f"{name}\n".encode() + (file.read_bytes() if file.is_file() else b""))
    return found.hexdigest()


class _Before:
    """Remembers what a script may change in this process."""

    def __init__(self) -> None:
        from pyspark import SparkContext

        self.main = sys.modules["__main__"]
        self.argv, self.path = sys.argv, list(sys.path)
        self.folder = Path.cwd()
        self.environment = dict(os.environ)
        self.context = SparkContext._active_spark_context
        self.workers = dict(self.context.environment) if self.context else {}
        self.hooks = sys.excepthook, threading.excepthook
        self.signals: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                self.signals[number] = signal.getsignal(number)

    def restore(self) -> None:
        sys.modules["__main__"] = self.main
        self.restore_surroundings()
        sys.excepthook, threading.excepthook = self.hooks
        for number, handler in self.signals.items():
            signal.signal(number, handler)

    def restore_surroundings(self) -> None:
        """Restore arguments, module path, working directory and environment."""
        sys.argv, sys.path[:] = self.argv, self.path
        os.chdir(self.folder)
        for name in set(os.environ) - set(self.environment) - _OF_SPARK:
            del os.environ[name]
        os.environ.update(self.environment)
        if self.context is not None:
            self.context.environment.clear()
            self.context.environment.update(self.workers)


def share_with_workers(folders: tuple[str, ...]) -> None:
    """Let Spark's Python workers find modules there, with the environment that a JVM inherits.

    A running JVM gets the folders with each function that is sent from now on.
    """
    pyspark = sys.modules.get("pyspark")
    context = pyspark.SparkContext._active_spark_context if pyspark is not None else None
    for environment in (os.environ, *([context.environment] if context else [])):
        before = environment.get(_PYTHONPATH)
        environment[_PYTHONPATH] = os.pathsep.join([*folders, *([before] if before else [])])


def _py_files(given: tuple[str, ...]) -> tuple[str, ...]:
    found = []
    for name in given:
        path = Path(name).resolve()
        if not path.exists():
            raise WrongUse(f"--py-files {name}: there is no such file")
        # A .zip or .egg contains modules itself; a .py is in a folder with modules.
        found.append(str(path.parent if path.suffix == ".py" else path))
    return tuple(dict.fromkeys(found))


def _places(module: types.ModuleType) -> tuple[str, ...]:
    """Return a module's file, or the folders of a package that has no `__init__.py`."""
    file = getattr(module, "__file__", None)
    if file:
        return (str(file),)
    try:
        return tuple(str(one) for one in getattr(module, "__path__", ()))
    except Exception:  # a module that makes its attributes as they are asked for
        return ()


def _is_inside(place: str, folders: tuple[str, ...]) -> bool:
    inside = (f"{place}{os.sep}".startswith(f"{folder}{os.sep}") for folder in folders)
    return any(inside) and not _is_installed(place)


def is_users_file(place: str) -> bool:
    """Whether a module's place is neither Python's own nor an installed package's."""
    own = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    return not _is_installed(place) and not any(place.startswith(f"{one}{os.sep}") for one in own)


def _is_installed(place: str) -> bool:
    return any(part in _INSTALLED for part in Path(place).parts)
