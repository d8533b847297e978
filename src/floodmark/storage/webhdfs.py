"""Writes on HDFS by WebHDFS: a file takes its name when it is whole, in one step of the NameNode.

fsspec's driver makes an empty file and appends to it, looks before it creates, and leaves the old
file where a copy has to replace it.
"""

from __future__ import annotations

import contextlib
import os
from functools import partial
from typing import IO, Any

CONNECT_SECONDS = 10.0
SILENT_SECONDS = 120.0
"""A NameNode or data node that says nothing for so long is taken for dead."""
_BYTES = {"content-type": "application/octet-stream"}


def limit_waits(fs: Any) -> None:
    """Give each request of a driver a limit; fsspec's waits for an answer for ever."""
    session = fs.session
    if not isinstance(session.request, partial):  # fsspec keeps its drivers
        session.request = partial(session.request, timeout=(CONNECT_SECONDS, SILENT_SECONDS))


def write_file(fs: Any, place: str, data: bytes | IO[bytes]) -> None:
    """Write the file, and replace one that is there."""
    beside = _written_beside(fs, place, data)
    try:
        if _renamed(fs, beside, place, renameoptions="OVERWRITE"):
            return
        # HttpFS does not know the option, and leaves a name that is taken as it is.
        fs._call("DELETE", "DELETE", place)
        if not _renamed(fs, beside, place):
            raise OSError(f"HDFS does not rename {beside}")
    except BaseException:
        _remove(fs, beside)
        raise


def create_file(fs: Any, place: str, data: bytes) -> bool:
    """Create the file; return False, and change nothing, if the name is taken."""
    beside = _written_beside(fs, place, data)
    made = False
    try:
        made = _renamed(fs, beside, place)
    finally:
        if not made:
            _remove(fs, beside)
    return made


def copy_file(fs: Any, source: str, place: str) -> None:
    with fs.open(source, "rb") as data:
        write_file(fs, place, data)


def _written_beside(fs: Any, place: str, data: bytes | IO[bytes]) -> str:
    """The path of a temporary file with the data. Folders above are made."""
    parent, _, name = place.rpartition("/")
    beside = f"{parent}/.{name}.{os.urandom(16).hex()}.tmp"
    try:
        answer = fs._call("CREATE", "PUT", beside, redirect=False, overwrite="false")
        location = fs._apply_proxy(answer.headers["Location"])
        _require_success(fs.session.put(location, data=data, headers=_BYTES))
    except BaseException:
        _remove(fs, beside)
        raise
    return beside


def _renamed(fs: Any, beside: str, place: str, **options: str) -> bool:
    answer = fs._call("RENAME", "PUT", beside, destination=place, **options)
    # With an option the NameNode answers nothing, and fails where it does not rename.
    return not answer.content or answer.json().get("boolean") is True


def _require_success(answer: Any) -> None:
    """A data node says in the body what is wrong."""
    if answer.ok:
        return
    try:
        said = answer.json()["RemoteException"]["message"]
    except (ValueError, KeyError, TypeError):
        answer.raise_for_status()
    raise OSError(said)


def _remove(fs: Any, beside: str) -> None:
    """Remove the file if HDFS allows it; the error that led here is the one reported."""
    with contextlib.suppress(Exception):
        fs._call("DELETE", "DELETE", beside)
