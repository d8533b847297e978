"""Which file is what: the names in a checkpoint folder, and nothing of their content.

Everything is told from a path relative to the checkpoint, with `/` between its parts.
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
"""Where sources begin that take their place as an option: `upgrade --without-state` writes it."""
DEFAULT_STORE = "default"
JOIN_SIDES = ("left", "right")
JOIN_COUNTS, JOIN_VALUES = "keyToNumValues", "keyWithIndexToValue"
JOIN_TIMED_VALUES = "keyWithTsToValues"
JOIN_STORES = tuple(f"{side}-{kind}" for side in JOIN_SIDES for kind in (JOIN_COUNTS, JOIN_VALUES))
"""A join's stores, in the order in which a commit names their unique ids."""
SIZE_UNKNOWN = -1

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
    """`SIZE_UNKNOWN` where only names were asked for."""
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
    """The batch of a log file's name. Spark ignores every name that is not a plain number."""
    if name.isascii() and name.isdecimal() and len(name) < 19 and (name[0] != "0" or name == "0"):
        return int(name)
    return None


def batch_ids(files: Iterable[FileInfo], log: str) -> tuple[int, ...]:
    """The batches of `offsets` or `commits`, lowest first."""
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
    """The sources that keep something of their own, by index or by name."""
    found = {parts[1] for file in files if (parts := file.path.split("/"))[0] == SOURCES}
    return tuple(sorted(found, key=lambda name: (batch_id(name) is None, batch_id(name), name)))


def names_in(files: Iterable[FileInfo], folder: str) -> tuple[str, ...]:
    """The names right under a folder, hidden ones left out."""
    prefix = folder.rstrip("/") + "/"
    return tuple(
        rest
        for file in files
        if file.path.startswith(prefix)
        and "/" not in (rest := file.path[len(prefix) :])
        and not rest.startswith(".")
    )


def parse_state_file(path: str, size: int = 0) -> StateFile | None:
    """`state/<operator>/<partition>[/<store>]/<version>[_<unique id>].<kind>`, or None."""
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
    """Where a store's files lie; the default store adds no level."""
    base = f"{STATE}/{operator}/{partition}"
    return base if store == DEFAULT_STORE else f"{base}/{store}"


def operator_metadata_paths(
    files: Iterable[FileInfo], operator: int, batch: int | None = None
) -> list[str]:
    """Where an operator describes itself: the newest v2 file up to a batch, then v1's."""
    base = f"{STATE}/{operator}/_metadata"
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
    """A write that never finished: Spark neither reads nor removes it."""
    return _TEMPORARY.fullmatch(name) is not None
