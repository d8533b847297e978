"""Recognises the files of a checkpoint folder by their names, without their content.

Every path is relative to the checkpoint, with `/` between its parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from floodmark.checkpoint.relative_path import RelativePath

METADATA = RelativePath("metadata")
OFFSETS = "offsets"
COMMITS = "commits"
SOURCES = "sources"
STATE = "state"
NOTES = "_floodmark"
STARTS = f"{NOTES}/starts"
FLOW_CHECKPOINTS = "_checkpoints"
START_FILE = f"{NOTES}/start.json"
"""The start positions of sources that take them as an option; `upgrade --without-state` writes
this file."""
DEFAULT_STORE = "default"
JOIN_SIDES = ("left", "right")
JOIN_COUNTS, JOIN_VALUES = "keyToNumValues", "keyWithIndexToValue"
JOIN_TIMED_VALUES = "keyWithTsToValues"
JOIN_STORES = tuple(f"{side}-{kind}" for side in JOIN_SIDES for kind in (JOIN_COUNTS, JOIN_VALUES))
"""The stores of a join, in the order in which a commit names their unique ids."""
SIZE_UNKNOWN = -1
OPERATOR_METADATA, STATE_SCHEMA = "_metadata", "_stateSchema"
"""Folders of an operator: its metadata, and the schemas of its rows."""
CHECKSUM = ".crc"
PROGRESS = "progress.jsonl"
"""In the notes: a line for each batch."""

_STATE_FILE = re.compile(
    r"(?P<version>\d{1,18})(?:_(?P<unique_id>[^/]+?))?\.(?P<kind>delta|snapshot|zip|changelog)"
)
_DSTREAMS = re.compile(r"checkpoint-\d+(\.bk)?")
_TEMPORARY = re.compile(r"\..+\.tmp|temp--?\d+|\.[0-9a-f-]{36}\.tmp")
PROVIDER_OF = {"delta": "hdfs", "snapshot": "hdfs", "zip": "rocksdb", "changelog": "rocksdb"}


class FileInfo(NamedTuple):
    """One file of a checkpoint, as storage lists it. A tuple, since there may be millions."""

    path: str
    size: int
    """`SIZE_UNKNOWN` if only names were asked for."""
    mtime_ms: int | None = None


@dataclass(frozen=True)
class StateFile:
    """A state store's delta, snapshot, zip or changelog."""

    path: str
    operator: int
    partition: int
    store: str
    version: int
    unique_id: str | None
    kind: str
    size: int

    @property
    def provider(self) -> str:
        return PROVIDER_OF[self.kind]


def batch_id(name: str) -> int | None:
    """Return the batch of a log file's name. Spark ignores names that are not plain numbers."""
    if name.isascii() and name.isdecimal() and len(name) < 19 and (name[0] != "0" or name == "0"):
        return int(name)
    return None


def batch_ids(files: Iterable[FileInfo], log: str) -> tuple[int, ...]:
    """Return the batches of `offsets` or `commits`, lowest first."""
    prefix = log + "/"
    start = len(prefix)
    return tuple(
        sorted(
            batch
            for file in files
            if file.path.startswith(prefix) and (batch := batch_id(file.path[start:])) is not None
        )
    )


def source_ids(files: Iterable[FileInfo]) -> tuple[str, ...]:
    """Return the ids of the sources that keep files of their own, by index or by name."""
    found = {parts[1] for file in files if (parts := file.path.split("/"))[0] == SOURCES}
    return tuple(sorted(found, key=lambda name: (batch_id(name) is None, batch_id(name), name)))


def names_in(files: Iterable[FileInfo], folder: str) -> tuple[str, ...]:
    """Return the names right under a folder, without hidden ones."""
    prefix = folder.rstrip("/") + "/"
    return tuple(
        rest
        for file in files
        if file.path.startswith(prefix)
        and "/" not in (rest := file.path[len(prefix) :])
        and not rest.startswith(".")
    )


def parse_state_file(path: str, size: int = 0) -> StateFile | None:
    """Parse `state/<operator>/<partition>[/<store>]/<version>[_<unique id>].<kind>`, or None."""
    parts = path.split("/")
    if parts[0] != STATE or len(parts) not in (4, 5):
        return None
    name = _STATE_FILE.fullmatch(parts[-1])
    if name is None:
        return None
    operator, partition = batch_id(parts[1]), batch_id(parts[2])
    if operator is None or partition is None:
        return None
    store = parts[3] if len(parts) == 5 else DEFAULT_STORE
    version, unique_id, kind = name.groups()
    return StateFile(path, operator, partition, store, int(version), unique_id, kind, size)


def state_files(files: Iterable[FileInfo]) -> tuple[StateFile, ...]:
    return tuple(
        found
        for file in files
        if file.path.startswith("state/") and (found := parse_state_file(file.path, file.size))
    )


def store_folder(operator: int, partition: int, store: str = DEFAULT_STORE) -> str:
    """Return the folder of a store's files; the default store adds no level."""
    base = f"{STATE}/{operator}/{partition}"
    return base if store == DEFAULT_STORE else f"{base}/{store}"


def operator_metadata_paths(
    files: Iterable[FileInfo], operator: int, batch: int | None = None
) -> list[str]:
    """Return the files that describe an operator: the newest v2 file up to a batch, then v1's."""
    base = f"{STATE}/{operator}/{OPERATOR_METADATA}"
    paths = {file.path for file in files if file.path.startswith(base)}
    versions = sorted(
        found
        for path in paths
        if path.startswith(base + "/v2/")
        and (found := batch_id(path.rsplit("/", 1)[1])) is not None
        and (batch is None or found <= batch)
    )
    chosen = [f"{base}/v2/{versions[-1]}"] if versions else []
    return chosen + [path for path in (f"{base}/metadata",) if path in paths]


def is_dstreams_checkpoint(name: str) -> bool:
    return _DSTREAMS.fullmatch(name) is not None


def is_temporary(name: str) -> bool:
    """Whether the name is of a write that never finished: Spark neither reads nor removes it."""
    return _TEMPORARY.fullmatch(name) is not None


def schema_file(operator: int, store: str) -> str:
    """Return where Spark writes a store's schema in the formats with one file for all versions."""
    return f"{store_folder(operator, 0, store)}/{OPERATOR_METADATA}/schema"


def side_file(path: str) -> str:
    """Return the path of a local file's checksums: Hadoop puts `.NAME.crc` beside it."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}{CHECKSUM}"


def main_file(path: str) -> str | None:
    """Return the file that a side file belongs to; None for every other name."""
    folder, slash, name = path.rpartition("/")
    if not (name.startswith(".") and name.endswith(CHECKSUM) and len(name) > 5):
        return None
    return f"{folder}{slash}{name[1:-4]}"


def checksum_file(path: str) -> str:
    """Return the path of Spark 4.1's own checksum of a state file: `NAME.crc` beside it."""
    return f"{path}{CHECKSUM}"
