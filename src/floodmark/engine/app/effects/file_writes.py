"""Leaves out what a script would write with Python itself: files, folders, other programs.

A file that is opened for writing becomes a file of a scratch folder, so that a log handler
works. Making and removing folders and files is skipped. An audit hook sees everything else; it
cannot skip an act, but it can refuse it.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from floodmark.engine.app.patching import Patches
from floodmark.engine.app.script_calls import Watch

_SKIPPED = (
    "chmod",
    "chown",
    "link",
    "makedirs",
    "mkdir",
    "mkfifo",
    "remove",
    "removedirs",
    "rename",
    "renames",
    "replace",
    "rmdir",
    "symlink",
    "truncate",
    "unlink",
    "utime",
)
_SKIPPED_TREES = ("copy", "copy2", "copyfile", "copytree", "move", "rmtree")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_COPIED_BYTES = 64 * 1024 * 1024
REFUSED = {
    "os.chmod": "changes a file's mode",
    "os.exec": "becomes another program",
    "os.fork": "starts another process",
    "os.forkpty": "starts another process",
    "os.kill": "sends a signal",
    "os.killpg": "sends a signal",
    "os.link": "makes a link",
    "os.mkdir": "makes a folder",
    "os.posix_spawn": "runs another program",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.rmdir": "removes a folder",
    "os.spawn": "runs another program",
    "os.symlink": "makes a link",
    "os.system": "runs another program",
    "os.truncate": "cuts a file",
    "sqlite3.connect": "opens a database",
    "subprocess.Popen": "runs another program",
}
_auditing: list[_Files] = []
_free: list[str] = []
"""Folders of this process in which any script may write."""
_is_hooked = False


def let_write_below(folder: str) -> None:
    """Let scripts write in a folder, for the rest of this process."""
    _free.append(folder)


class _Files:
    def __init__(self, watch: Watch, scratch: Path) -> None:
        self.watch = watch
        self.scratch = scratch
        self.own: list[str] = [str(scratch)]
        """Folders in which the script may write: new ones, made by tempfile."""
        self.written: dict[str, Path] = {}
        """The files that the script has written, by the paths that it used."""

    def is_free(self, path: Any) -> bool:
        """Whether writing there changes nothing that existed before."""
        place = absolute_path(path)
        return place is not None and place.startswith(
            ("/dev/", "/proc/self/", *(f"{one}/" for one in (*self.own, *_free)))
        )

    def stand_in(self, path: Any, mode: str) -> Path:
        place = absolute_path(path) or str(path)
        if place not in self.written:
            made = self.scratch / str(len(self.written))
            keeps = "w" not in mode and "x" not in mode
            with contextlib.suppress(OSError):
                if keeps and os.path.getsize(place) <= _COPIED_BYTES:  # noqa: PTH202
                    made.write_bytes(Path(place).read_bytes())
            self.written[place] = made
            self.watch.skip(f"open({str(path)!r}, {mode!r})")
        return self.written[place]


def leave_out_log_handlers(patches: Patches) -> None:
    """Remove the handlers that the script adds; else they would go on to write to its files."""
    before = {logger: list(logger.handlers) for logger in _loggers()}
    levels = {logger: logger.level for logger in before}

    def put_back() -> None:
        for logger in _loggers():
            for handler in list(logger.handlers):
                if handler not in before.get(logger, ()):
                    logger.removeHandler(handler)
            logger.setLevel(levels.get(logger, logger.level))

    patches.callback(put_back)


def _loggers() -> list[logging.Logger]:
    known = logging.root.manager.loggerDict.values()
    return [logging.root, *(one for one in known if isinstance(one, logging.Logger))]


def leave_out_files(patches: Patches, watch: Watch) -> None:
    made = patches.enter_context(
        tempfile.TemporaryDirectory(prefix="floodmark-script-", ignore_cleanup_errors=True)
    )
    files = _Files(watch, Path(made))
    for name in _SKIPPED:
        patches.wrap(os, name, _skipping(files, f"os.{name}"))
    for name in _SKIPPED_TREES:
        patches.wrap(shutil, name, _skipping(files, f"shutil.{name}"))
    opening = _opening(files, builtins.open)
    patches.set(builtins, "open", opening)
    patches.set(io, "open", opening)
    patches.wrap(os, "open", _opening_descriptor(files))
    patches.wrap(tempfile, "mkdtemp", _remembering(files))
    _hook()
    _auditing.append(files)
    patches.callback(_auditing.remove, files)


def _skipping(files: _Files, words: str) -> Callable[[Any], Any]:
    def wrapper(original: Any) -> Any:
        def skipped(*given: Any, **named: Any) -> Any:
            places = [one for one in given[:2] if isinstance(one, str | bytes | os.PathLike)]
            if not files.watch.is_users_call() or all(files.is_free(one) for one in places):
                return original(*given, **named)
            files.watch.skip(f"{words}({', '.join(repr(os.fsdecode(one)) for one in places)})")
            # shutil's functions return the target path.
            return given[1] if words.startswith("shutil.") and len(given) > 1 else None

        return skipped

    return wrapper


def _opening(files: _Files, original: Any) -> Any:
    def opened(file: Any, mode: str = "r", *given: Any, **named: Any) -> Any:
        if isinstance(file, int) or not files.watch.is_users_call():
            return original(file, mode, *given, **named)
        writes = isinstance(mode, str) and any(sign in mode for sign in "wax+")
        if writes and not files.is_free(file):
            mode = mode.replace("x", "w") if absolute_path(file) not in files.written else mode
            return original(files.stand_in(file, mode), mode, *given, **named)
        return original(files.written.get(absolute_path(file) or "", file), mode, *given, **named)

    return opened


def _opening_descriptor(files: _Files) -> Callable[[Any], Any]:
    def wrapper(original: Any) -> Any:
        def opened(path: Any, flags: int, *given: Any, **named: Any) -> Any:
            # The audit hook handles a path below another descriptor.
            if not files.watch.is_users_call() or "dir_fd" in named:
                return original(path, flags, *given, **named)
            if flags & WRITES and not files.is_free(path):
                is_new = absolute_path(path) not in files.written
                path = files.stand_in(path, "w" if flags & os.O_TRUNC else "a")
                flags = flags & ~os.O_EXCL if is_new else flags
                return original(path, flags, *given, **named)
            return original(
                files.written.get(absolute_path(path) or "", path), flags, *given, **named
            )

        return opened

    return wrapper


def _remembering(files: _Files) -> Callable[[Any], Any]:
    def wrapper(original: Any) -> Any:
        def mkdtemp(*given: Any, **named: Any) -> Any:
            made = original(*given, **named)
            if files.watch.applies():
                files.own.append(os.fsdecode(made))
            return made

        return mkdtemp

    return wrapper


def _hook() -> None:
    """Add the audit hook, for the rest of this process: Python cannot remove it."""
    global _is_hooked
    if not _is_hooked:
        sys.addaudithook(_audit)
        _is_hooked = True


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _auditing or (event != "open" and event not in REFUSED):
        return
    for files in tuple(_auditing):
        if not files.watch.applies():
            continue
        if event == "open":
            path, _, flags = arguments
            if not (isinstance(flags, int) and flags & WRITES) or isinstance(path, int):
                continue
            words = "writes a file"
        else:
            path, words = arguments[0] if arguments else "", REFUSED[event]
        if not files.watch.is_users_call() or (path != "" and files.is_free(path)):
            continue
        raise files.watch.refuse(f"the script {words}: {_shown(path)}")


def _shown(path: Any) -> str:
    if isinstance(path, str | bytes | os.PathLike):
        return os.fsdecode(path)
    return " ".join(map(str, path)) if isinstance(path, list | tuple) else str(path)


def absolute_path(path: Any) -> str | None:
    """Return the absolute path; None for a file's number, which is not a path."""
    if not isinstance(path, str | bytes | os.PathLike):
        return None
    return os.path.abspath(os.fsdecode(path))  # noqa: PTH100
