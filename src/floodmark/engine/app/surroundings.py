"""Sets up a script's surroundings: its folder on sys.path, its modules, arguments, `__main__`.

They last as long as the `with`, so that a module imported beside the old code is not mistaken
for the module of the same name beside the new code.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.app.script_text import ScriptText
from floodmark.errors import WrongUse

_PYTHONPATH = "PYTHONPATH"
_folders: list[tuple[str, ...]] = []


@contextlib.contextmanager
def at_home(source: ScriptText, options: ScriptOptions) -> Iterator[types.ModuleType]:
    folders = (str(source.path.resolve().parent), *_py_files(options.py_files))
    module = types.ModuleType("__main__")
    module.__file__ = source.file
    module.__builtins__ = __builtins__  # type: ignore[attr-defined]
    before = _Before()
    others = _modules_in(tuple(one for outer in _folders for one in outer))
    for name in others:
        del sys.modules[name]
    sys.modules["__main__"] = module
    sys.argv = [str(source.path), *options.arguments]
    # As with `python script.py`, the script's folder comes first.
    sys.path[:0] = folders
    share_with_workers(folders)
    _folders.append(folders)
    try:
        yield module
    finally:
        _folders.pop()
        for name in _modules_in(folders):
            del sys.modules[name]
        sys.modules.pop("floodmark.auto", None)  # its import has an effect
        sys.modules.update(others)
        before.restore()


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
        sys.argv, sys.path[:] = self.argv, self.path
        os.chdir(self.folder)
        for name in set(os.environ) - set(self.environment):
            del os.environ[name]
        os.environ.update(self.environment)
        if self.context is not None:
            self.context.environment.clear()
            self.context.environment.update(self.workers)
        sys.excepthook, threading.excepthook = self.hooks
        for number, handler in self.signals.items():
            signal.signal(number, handler)


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


def _modules_in(folders: tuple[str, ...]) -> dict[str, types.ModuleType]:
    inside = tuple(f"{folder}{os.sep}" for folder in folders)
    installed = f"{os.sep}site-packages{os.sep}"
    return {
        name: module
        for name, module in list(sys.modules.items())
        if inside
        and name.partition(".")[0] not in ("__main__", "floodmark", "pyspark")
        and (file := str(getattr(module, "__file__", None) or "")).startswith(inside)
        and installed not in file
    }
