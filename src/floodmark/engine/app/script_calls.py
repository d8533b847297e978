"""Decides which calls come from the watched script, and records what was not carried out.

Threads that the script starts are watched as long as they live: a thread that wakes after the
script has ended must not start a query then.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

from floodmark.engine.app.patching import WRAPPERS
from floodmark.engine.app.script_text import ScriptText

_MARK = "_floodmark_watch"
# What these packages write, such as the file of a broadcast, is Spark's own business.
_TRUSTED = frozenset({"pyspark", "py4j", "floodmark"})


class NotCarriedOut(PermissionError):
    """Raised for an act of the script that a judging verb does not carry out and cannot skip."""


@dataclass(frozen=True)
class Act:
    """An act of the script that was left out."""

    words: str
    line: int | None

    def where(self, source: ScriptText) -> str:
        return f"{source.path}, line {self.line}" if self.line is not None else str(source.path)


_watching: list[Watch] = []


def is_watched() -> bool:
    """Whether this process only judges code now."""
    return bool(_watching)


class Watch:
    harmless = frozenset({"tempfile"})
    """Modules of Python that only make new files of their own, wherever they are."""

    def __init__(self, source: ScriptText) -> None:
        self.source = source
        self.acts: list[Act] = []
        self._script: threading.Thread | None = None

    def begin(self) -> None:
        self._script = threading.current_thread()
        _watching.append(self)

    def end(self) -> None:
        self._script = None
        _watching.remove(self)

    def applies(self) -> bool:
        thread = threading.current_thread()
        return thread is self._script or getattr(thread, _MARK, None) is self

    def adopt(self, thread: threading.Thread) -> None:
        setattr(thread, _MARK, self)

    def living(self) -> list[threading.Thread]:
        return [one for one in threading.enumerate() if getattr(one, _MARK, None) is self]

    def is_users_call(self) -> bool:
        """Whether the script, or a library that it uses, makes this call, and not Spark itself."""
        return self.applies() and is_users(sys._getframe(2), self.harmless)

    def skip(self, words: str) -> None:
        self.acts.append(Act(words, self.line()))

    def refuse(self, words: str) -> NotCarriedOut:
        self.skip(words)
        return NotCarriedOut(f"floodmark does not carry this out: {words}")

    def line(self) -> int | None:
        """Return the line at which the script is now."""
        for frame in _frames(sys._getframe(1)):
            if frame.f_code.co_filename == self.source.file:
                return self.source.line(frame.f_lineno)
        return None


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def is_users(frame: FrameType | None, harmless: frozenset[str] = frozenset()) -> bool:
    """Whether the nearest caller outside Python's own modules belongs to the user.

    If there is none, a thread runs a function of Python itself, such as os.remove.
    """
    for one in _frames(frame):
        if one.f_code in WRAPPERS:  # also those of another watched script
            continue
        name = str(one.f_globals.get("__name__", ""))
        top = name.partition(".")[0]
        if name in harmless:
            return False
        if top in sys.stdlib_module_names and name != "__main__":
            continue
        return top not in _TRUSTED
    return True
