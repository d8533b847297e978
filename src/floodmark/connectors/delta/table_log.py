"""Reads a Delta table's log without Spark: versions, their times, and the table's identity."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.delta.offset import TABLE_LOG
from floodmark.errors import FloodmarkError, MalformedFile, WrongUse
from floodmark.storage.files import Files

_READ_AT_ONCE = 64
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(?:\d+\.\d+|[0-9a-f-]{36}))?\.parquet")


def is_delta_table(files: Files) -> bool:
    return any(_COMMIT.fullmatch(name) for name in files.level(TABLE_LOG).files)


def versions(files: Files) -> list[int]:
    """Return the versions whose commits the log still holds."""
    return sorted(
        int(found[1]) for name in files.level(TABLE_LOG).files if (found := _COMMIT.fullmatch(name))
    )


def actions(files: Files, version: int) -> list[dict[str, Any]]:
    """Return the actions of one commit, a JSON object each."""
    return _parsed(version, files.read(RelativePath(f"{TABLE_LOG}/{version:020d}.json")))


def commits(files: Files, wanted: Sequence[int]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield the actions of many commits; reads a few dozen at once."""
    for start in range(0, len(wanted), _READ_AT_ONCE):
        part = wanted[start : start + _READ_AT_ONCE]
        found = files.read_many(
            RelativePath(f"{TABLE_LOG}/{version:020d}.json") for version in part
        )
        for version in part:
            data = found[f"{TABLE_LOG}/{version:020d}.json"]
            if isinstance(data, FloodmarkError):
                raise data
            yield version, _parsed(version, data)


def _parsed(version: int, data: bytes) -> list[dict[str, Any]]:
    try:
        found = [json.loads(line) for line in data.decode().splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise MalformedFile(f"{TABLE_LOG}/{version:020d}.json cannot be read: {error}") from None
    return [action for action in found if isinstance(action, dict)]


def checkpoints(files: Files) -> dict[int, list[str]]:
    """Return version → the files of the log's own checkpoint of it."""
    found: dict[int, list[str]] = {}
    for name in files.level(TABLE_LOG).files:
        match = _CHECKPOINT.fullmatch(name)
        if match:
            found.setdefault(int(match[1]), []).append(f"{TABLE_LOG}/{name}")
    return found


def table_id(files: Files) -> str | None:
    """Return the table's identity, from the newest commit or log checkpoint that has it."""
    found = metadata(files)
    return None if found is None or found.get("id") is None else str(found["id"])


def metadata(files: Files) -> dict[str, Any] | None:
    """Return the table's own description, from the newest commit or log checkpoint that has it."""
    saved = checkpoints(files)
    since = max(saved, default=-1)
    # A checkpoint of the log holds what all commits up to it say.
    for version in reversed([one for one in versions(files) if one > since]):
        try:
            for action in actions(files, version):
                if isinstance(action.get("metaData"), dict):
                    return dict(action["metaData"])
        except FloodmarkError:
            continue
    for found in saved_actions(files, saved[since], "metaData") if saved else ():
        if found.get("id") is not None:
            # Parquet gives a map as a list of pairs.
            return {**found, "configuration": dict(found.get("configuration") or ())}
    return None


def saved_actions(files: Files, paths: list[str], kind: str) -> Iterator[dict[str, Any]]:
    """Yield the actions of one kind in a checkpoint of the log."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise WrongUse(
            "reading a checkpoint of a Delta table's log needs pyarrow",
            do='Install it with: pip install "floodmark[state]"',
        ) from None

    for path in paths:
        data = io.BytesIO(files.read(RelativePath(path)))
        try:
            file = pyarrow.parquet.ParquetFile(data)
            has_kind = kind in file.schema_arrow.names
            found = file.read(columns=[kind]).column(kind).to_pylist() if has_kind else []
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            words = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise MalformedFile(f"{path} cannot be read: {words}") from None
        yield from (action for action in found if isinstance(action, dict))


def commit_files(files: Files) -> dict[int, FileInfo]:
    """Return version → the file of its commit."""
    return {
        int(found[1]): file
        for file in files.list(TABLE_LOG).files
        if (found := _COMMIT.fullmatch(file.path.rpartition("/")[2]))
    }


def version_times(files: Files) -> dict[int, int]:
    """Return when each version in the log was made, in ms, as Delta itself computes it."""
    there = commit_files(files)
    times = {version: file.mtime_ms or 0 for version, file in there.items()}
    if there and _in_commit_ms(files.read(RelativePath(there[max(there)].path))) is not None:
        contents = files.read_many(RelativePath(file.path) for file in there.values())
        for version, file in there.items():
            data = contents[file.path]
            inside = _in_commit_ms(data) if isinstance(data, bytes) else None
            times[version] = times[version] if inside is None else inside
    # Files may have been copied out of order: no version is older than the one before it.
    last = -1
    for version in sorted(times):
        last = times[version] = max(times[version], last + 1)
    return times


def _in_commit_ms(commit: bytes) -> int | None:
    """Return the time inside a commit, if the table has inCommitTimestamp enabled."""
    try:
        found = json.loads(commit.partition(b"\n")[0])["commitInfo"]["inCommitTimestamp"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, int) else None
