"""Runs a script as `__main__`, and catches everything that would start or write something."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from floodmark.engine.app.caught_query import Caught
from floodmark.engine.app.caught_starts import Starts, catch_starts
from floodmark.engine.app.effects.bytecode import leave_out_bytecode
from floodmark.engine.app.effects.file_writes import leave_out_files, leave_out_log_handlers
from floodmark.engine.app.effects.spark_writes import leave_out_effects
from floodmark.engine.app.notebook_names import notebook_names, offer_dbutils
from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.app.patching import Patches
from floodmark.engine.app.script_calls import Act, Watch
from floodmark.engine.app.script_text import ScriptText
from floodmark.engine.app.surroundings import is_users_file
from floodmark.engine.app.time_limit import Limit, ScriptEnded, end_at_once
from floodmark.errors import FloodmarkError

_left: list[tuple[contextlib.ExitStack, Watch]] = []
"""The patches of scripts whose threads still live."""
_THREADS_SECONDS = 5.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class ScriptOutcome:
    """The result of a script that has run."""

    source: ScriptText
    options: ScriptOptions
    starts: tuple[Caught, ...]
    acts: tuple[Act, ...]
    """The acts that were left out, in order."""
    ended: BaseException | None
    """An exception that the script did not catch."""
    failed_thread: BaseException | None
    limit_reached: bool
    asked_for_input: int | None
    """The line that waits for input."""
    names: dict[str, Any]
    """The variables in the script's namespace."""


def run_script(
    source: ScriptText,
    options: ScriptOptions,
    module: types.ModuleType,
    enough: Callable[[tuple[Caught, ...]], bool],
) -> ScriptOutcome:
    """Run the script; `enough` says whether a wanted query is among the caught ones."""
    code = source.compiled()
    limit = Limit(options.limit_seconds, str(source.path))
    ended: BaseException | None = None
    with watching(source, lambda found: limit.found_enough() if enough(found) else None) as seen:
        offer_dbutils(seen.patches, seen.watch, options.arguments)
        limit.shorten_sleep(seen.patches, seen.watch)
        stdin = _NoInput(seen.watch)
        seen.patches.set(sys, "stdin", stdin)
        try:
            with limit.kept():
                if source.is_notebook:
                    vars(module).update(notebook_names(seen.watch, options.arguments))
                exec(code, vars(module))  # nosec B102
                _join(seen.watch, lambda: limit.has_enough)
        except FloodmarkError:
            raise
        except ScriptEnded:
            pass
        except BaseException as error:  # also SystemExit: the end of the script is judged later
            if isinstance(error, KeyboardInterrupt) and stdin.line is None:
                raise
            ended = error
    return ScriptOutcome(
        source,
        options,
        tuple(seen.starts.found),
        tuple(seen.watch.acts),
        ended,
        seen.failed_thread,
        limit.reached,
        stdin.line,
        dict(vars(module)),
    )


class Seen:
    def __init__(self, source: ScriptText, on_start: Callable[[tuple[Caught, ...]], None]) -> None:
        self.watch = Watch(source)
        self.patches = Patches()
        self.starts = Starts(self.watch, lambda: on_start(tuple(self.starts.found)))
        self.failed_thread: BaseException | None = None


@contextlib.contextmanager
def watching(
    source: ScriptText, on_start: Callable[[tuple[Caught, ...]], None] = lambda _: None
) -> Iterator[Seen]:
    """Let code that runs in this thread meanwhile start nothing and write nothing."""
    release_left()
    seen = Seen(source, on_start)
    patches, watch = seen.patches, seen.watch
    catch_starts(patches, watch, seen.starts)
    leave_out_effects(patches, watch)
    leave_out_files(patches, watch)
    leave_out_bytecode(patches, is_users_file)
    leave_out_log_handlers(patches)
    patches.wrap(threading.Thread, "start", _adopting(watch))
    patches.set(threading, "excepthook", _keeping(seen, threading.excepthook))
    patches.wrap(atexit, "register", _unless(watch, lambda function, *_, **__: function))
    patches.wrap(os, "_exit", _unless(watch, end_at_once))
    watch.begin()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield seen
    finally:
        watch.end()
        if watch.living():
            # Its threads continue, and must not start or write anything later either.
            _left.append((patches.pop_all(), watch))
        else:
            patches.close()


def release_left() -> None:
    """Undo the patches that were left for threads that have ended since, the last one first."""
    while _left and not _left[-1][1].living():
        _left.pop()[0].close()


def _join(watch: Watch, has_enough: Callable[[], bool]) -> None:
    """Wait for the script's threads, as Python does; give a daemon a moment to start its query."""
    for thread in watch.living():
        if not thread.daemon:
            thread.join()
    end = time.monotonic() + _THREADS_SECONDS
    while not has_enough() and watch.living() and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)


def _adopting(watch: Watch) -> Callable[[Any], Any]:
    def wrapper(original: Any) -> Any:
        def start(self: threading.Thread) -> None:
            if watch.is_users_call():
                watch.adopt(self)
            original(self)

        return start

    return wrapper


def _keeping(seen: Seen, original: Any) -> Any:
    def hook(arguments: Any) -> None:
        if not seen.watch.applies():
            original(arguments)
        elif seen.failed_thread is None:
            seen.failed_thread = arguments.exc_value

    return hook


def _unless(watch: Watch, instead: Callable[..., Any]) -> Callable[[Any], Any]:
    def wrapper(original: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            return (instead if watch.is_users_call() else original)(*given, **named)

        return call

    return wrapper


class _NoInput(io.TextIOBase):
    """Replaces the standard input of a script, as nobody can type."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.line: int | None = None

    def readable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def _asked(self, *_given: Any) -> Any:
        self.line = self._watch.line() or 0
        raise EOFError("floodmark gives a script no input")

    read = readline = readlines = __next__ = _asked


def innermost_line(source: ScriptText, error: BaseException) -> tuple[int | None, str]:
    """Return the script's line that led to an error, and its text."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == source.file]
    if not own:
        return None, ""
    return source.line(own[-1].lineno), own[-1].line or ""
