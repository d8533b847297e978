"""Limits how much is read: a limit for every kind of file, and a memory budget for all.

A checkpoint may come from anybody. A sparse file of a terabyte, or a few kilobytes that unpack to
gigabytes, must end with a sentence and not use up the machine's memory. The limits are far above
what Spark writes; `floodmark --raise-limit KIND=SIZE` or the variable FLOODMARK_LIMITS raises them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from floodmark.errors import OverLimit, WrongUse

VARIABLE = "FLOODMARK_LIMITS"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# In bytes, except `ratio` and `seconds`. Only memory limits a kind without an entry.
DEFAULTS: Mapping[str, int] = MappingProxyType(
    {
        "entry": 32 * MIB,  # offsets/N, commits/N: a few hundred bytes a source or partition
        "metadata": 16 * MIB,  # the query's id, and what an operator says of itself
        "schema": 32 * MIB,  # a state schema
        "checksum": 64 * MIB,  # 4 bytes for each 512 of the file beside it
        "lease": MIB,
        "note": 32 * MIB,  # one start of a query, its plan included
        "journal": 512 * MIB,  # a plan as it is carried out: rewritten logs are inside
        "plan": 512 * MIB,
        "code": 64 * MIB,  # a script, a notebook with its results, a start file
        "snapshot": 512 * MIB,  # a backup's list of files
        "file-log": 2 * GIB,  # a file source's or sink's list: compact files have every file ever
        "graph": 128 * MIB,  # a DStreams application, unpacked: code, and the files it remembers
        "state": 16 * GIB,  # one delta, snapshot, changelog or RocksDB table
        "zip": 64 * MIB,  # the unpacked entries of a RocksDB snapshot: its manifest
        "row": 128 * MIB,  # one key and value of a state
        "ratio": 1000,  # a state file's content to its size, beyond the first 256 MiB of content
        "seconds": 8,  # that RocksDB may be silent: to open a snapshot, for each piece of it
        "memory": 0,  # what may be held at once; 0: half of what this process can have
    }
)
# Parsing a whole file takes several times its size; a line of a file log becomes an object.
_PARSED = MappingProxyType({"file-log": 8, "journal": 8, "plan": 8, "snapshot": 8})
_LARGE = MIB
FREE_OF_RATIO = 256 * MIB
_SIZE = re.compile(r"(\d{1,15})\s*([kmgt]?)i?b?", re.IGNORECASE)
_UNITS = {"": 1, "k": KIB, "m": MIB, "g": GIB, "t": GIB << 10}
_ALWAYS_HELD = 64 * MIB
_NO_LIMIT = 1 << 60  # the value of operating systems and cgroups without a limit, or more


@dataclass(frozen=True)
class Limits:
    sizes: Mapping[str, int]

    def of(self, kind: str) -> int:
        """Return the most bytes that a file of a kind may have."""
        budget = self.memory // _PARSED.get(kind, 1)
        return min(self.sizes.get(kind) or budget, budget)

    @property
    def memory(self) -> int:
        return self.sizes["memory"] or _half_of_memory()


def current() -> Limits:
    return parse_limits(os.environ.get(VARIABLE, ""))


def raise_limits(pairs: tuple[str, ...]) -> None:
    """Raise limits for this process and those that it starts."""
    if pairs:
        text = ",".join(filter(None, [os.environ.get(VARIABLE, ""), *pairs]))
        parse_limits(text)
        os.environ[VARIABLE] = text


@lru_cache(maxsize=8)
def parse_limits(text: str) -> Limits:
    """Parse `journal=1G,row=512M`; kinds that are not named keep their default."""
    sizes = dict(DEFAULTS)
    for pair in filter(None, (part.strip() for part in text.split(","))):
        kind, equals, size = pair.partition("=")
        if not equals or kind not in DEFAULTS:
            raise WrongUse(
                f"{pair!r} is not a limit",
                f"The kinds are {', '.join(DEFAULTS)}.",
                "Give a kind and a size: --raise-limit journal=1G",
            )
        sizes[kind] = parse_size(size)
    return Limits(MappingProxyType(sizes))


def parse_size(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise WrongUse(f"{text!r} is not a size", do="Give a number with K, M, G or T: 512M, 8G.")
    return int(found[1]) * _UNITS[found[2].lower()]


def kind_of(path: str) -> str:
    """Return a file's kind, from its path below a checkpoint, a repository or an output folder."""
    parts = path.split("/")
    first, name = parts[0], parts[-1]
    if name.endswith(".crc"):
        return "checksum"
    if first in ("offsets", "commits"):
        return "entry"
    if first == "_floodmark" and len(parts) > 1:
        return _ours(parts)
    if first == "sources" or "_spark_metadata" in parts:
        return "file-log"
    if first == "state":
        described = "_metadata" in parts or "_stateSchema" in parts
        is_schema = name == "schema" or "_stateSchema" in parts
        return "schema" if is_schema else "metadata" if described else "state"
    if first in ("metadata", "floodmark-backup.json", "running"):
        return "metadata"
    if len(parts) == 1 and first.startswith("checkpoint-"):
        return "graph"
    return "snapshot" if first == "snapshots" else "state"


def _ours(parts: list[str]) -> str:
    second = parts[1]
    if second == "kept" and len(parts) > 4:  # kept/<plan>/<place>/<path>
        return kind_of("/".join(parts[4:]))
    return {"lease.json": "lease", "epochs": "lease", "journal": "journal"}.get(second, "note")


def over_limit(what: str, size: int | None, kind: str) -> OverLimit:
    """Return the error; `size` is None where the limit was reached before the end."""
    limits = current()
    most = limits.of(kind)
    by_memory = kind == "memory" or most < limits.sizes[kind]
    words = "its kind's limit"
    if by_memory:
        words = "that is half of what this process can have"
        if kind in _PARSED:
            words = f"parsed, it takes some {_PARSED[kind]} times as much memory"
    has = "is" if size is None else f"has {shown(size)},"
    needed = -(-2 * max(size or 0, most) // MIB) * (_PARSED.get(kind, 1) if by_memory else 1)
    return OverLimit(
        f"{what} {has} more than is read",
        f"No more than {shown(most)} are read: {words}. `floodmark --raise-limit "
        f"{'memory' if by_memory else kind}={needed}M …` raises it.",
        "Check the file first: it is far larger than such files are."
        if kind in ("code", "plan")
        else "Check the file first: Spark writes no file of this size.",
    )


def check_size(path: str, size: int, kind: str | None = None) -> None:
    """Refuse a file that is larger than the limit of its kind, before it is read."""
    kind = kind or kind_of(path)
    if size > current().of(kind):
        raise over_limit(path, size, kind)


class Held:
    """Counts the memory of many files that are read together."""

    def __init__(self) -> None:
        self._bytes = 0
        self._most: int | None = None

    def add(self, path: str, data: bytes) -> bytes:
        size = len(data) * (_PARSED.get(kind_of(path), 1) if len(data) > _LARGE else 1)
        self._bytes += size
        if self._bytes > _ALWAYS_HELD:
            if self._most is None:
                self._most = current().memory
            if self._bytes > self._most:
                self._bytes -= size
                raise over_limit(f"{path} with what was read before it", None, "memory")
        return data


def shown(size: int) -> str:
    for unit, factor in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if size >= factor:
            return f"{size / factor:,.0f} {unit}"
    return f"{size:,} bytes"


@lru_cache(maxsize=1)
def _half_of_memory() -> int:
    return max(min(_of_machine(), _of_process(), _of_cgroup()) // 2, 64 * MIB)


def _of_machine() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return _NO_LIMIT


def _of_process() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return _NO_LIMIT
    found = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return min((size for size in found if size > 0), default=_NO_LIMIT)


def _of_cgroup() -> int:
    """Return a container's memory, which is less than its machine's; names of cgroups 2 and 1."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path, encoding="ascii") as file:
                text = file.read().strip()
        except (OSError, ValueError):
            continue
        if text.isdecimal():
            return int(text)
    return _NO_LIMIT
