"""Notes at each start which code made the context in a DStreams folder.

The checkpoint holds the application itself, so a recovery runs the saved code. The note shows
whether that is the code that the user has now.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import time
from collections.abc import Mapping
from typing import Any

from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint
from floodmark.checkpoint.layout import STARTS
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.engine.code.digests.python_code import function_digest
from floodmark.engine.dstreams.declaration import DStreamPipeline
from floodmark.engine.start.notes import add_note
from floodmark.errors import FloodmarkError, Refused
from floodmark.storage.files import Files, WritableFiles
from floodmark.storage.last_start import note_numbers
from floodmark.storage.machine.process import host_name, this_process

KIND = "dstream-note"


class CodeChanged(Refused):
    """Raised where a recovery would run other code than the user has."""


def code_of(pipeline: DStreamPipeline, values: Mapping[str, Any]) -> str:
    """Digest the function and its arguments; comments and layout do not count."""
    given = [sorted((key, repr(value)) for key, value in values.items()), pipeline.batch_ms]
    digest = hashlib.sha256(json.dumps(given).encode()).hexdigest()
    return f"{function_digest(pipeline.function)}/{digest[:16]}"


def write_code_note(
    files: WritableFiles, pipeline: DStreamPipeline, code: str, zero_ms: int, spark_version: str
) -> None:
    note = {
        "floodmark": KIND,
        "version": 1,
        "pipeline": pipeline.name,
        "code": code,
        "zero_time_ms": zero_ms,
        "spark_version": spark_version,
        "started_ms": int(time.time() * 1000),
        "host": host_name(),
        "pid": this_process().pid,
    }
    add_note(files, json.dumps(note).encode())


def noted_code(files: Files, found: DStreamsCheckpoint) -> Mapping[str, Any] | None:
    """Return the newest note of the context in the folder's newest file."""
    for number in reversed(note_numbers(files)):
        try:
            note = json.loads(files.read(RelativePath(f"{STARTS}/{number}.json")))
        except (FloodmarkError, ValueError, RecursionError):
            continue
        if (
            isinstance(note, dict)
            and note.get("floodmark") == KIND
            and note.get("zero_time_ms") == found.zero_time_ms
            and isinstance(note.get("code"), str)
        ):
            return note
    return None


def require_same_code(
    location: str, found: DStreamsCheckpoint, note: Mapping[str, Any] | None, code: str, app: str
) -> None:
    """Refuse a recovery that would run other code than the user's file has."""
    if note is not None and note["code"] == code:
        return
    what = f"{location}: the code has changed since this context was made"
    why = (
        f"A recovery uses {found.restart_file}, which contains the application itself: the old "
        "code would go on running, without a warning."
    )
    if note is None:
        what = f"{location}: no note says which code made this context"
    elif str(note["code"])[:4] != code[:4]:
        why += f" It was made with another Python ({str(note['code']).partition(':')[0]})."
    raise CodeChanged(
        what,
        why,
        f"Begin anew with this code and the old state: floodmark run {shlex.quote(app)} "
        "--fresh-with-state\n"
        f"Or go on with the old code: floodmark run {shlex.quote(app)} --old-code",
    )
