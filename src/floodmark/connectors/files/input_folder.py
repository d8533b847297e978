"""Finds the files of an input folder that Spark's file source would read.

Spark lists the folder (or what its glob matches) and leaves hidden names out. It goes into folders
only if they are partitions (`day=1`) or if recursiveFileLookup is set. It never reads a file that
is much older than the newest one it has seen (maxFileAge). Pure except for the listing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from urllib.parse import unquote

from floodmark.checkpoint.layout import FileInfo
from floodmark.connectors.live import Open
from floodmark.errors import CannotRead

_GLOB = re.compile(r"[*?\[{]")
_AGE = re.compile(r"(\d{1,12})\s*(ms|s|m|min|h|d)?", re.IGNORECASE)
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_USUAL_AGE_MS = 7 * 86_400_000
_MOST_FILES = 500_000
_MOST_FOLDERS = 5_000


def address(path: str) -> str:
    """Return the path as `opened` needs it: Spark writes file names as URIs, with %20 for a
    space.
    """
    scheme, colon, rest = path.partition(":")
    return "/" + unquote(rest).lstrip("/") if scheme == "file" and colon else path


def same_file(path: str) -> str:
    """Return one name for a file, however Spark or the user writes its address."""
    return re.sub(r"^[A-Za-z][\w+.-]*:(?://[^/]*)?/*", "/", address(path))


def listed_files(
    place: str, options: Mapping[str, str], opened: Open
) -> Iterator[tuple[str, FileInfo]]:
    """Yield (address, file) for everything that the source would see at a path or glob."""
    everything = options.get("recursivefilelookup", "").lower() == "true"
    for folder in _folders(place.rstrip("/") or "/", opened):
        for file in _in_folder(folder, everything, opened):
            name = file.path.rpartition("/")[2]
            if passes_filter(name, options):
                yield f"{folder.rstrip('/')}/{file.path}", file


def passes_filter(name: str, options: Mapping[str, str]) -> bool:
    """Whether pathGlobFilter accepts a file of this name: `*.{csv,txt}` is Hadoop's, not
    Python's.
    """
    wanted = options.get("pathglobfilter")
    return wanted is None or _name_pattern(wanted).fullmatch(name) is not None


@cache
def _name_pattern(glob: str) -> re.Pattern[str]:
    made, open_braces, at = [], 0, 0
    while at < len(glob):
        sign, at = glob[at], at + 1
        end = glob.find("]", at + 1) if sign == "[" else -1
        if sign == "\\" and at < len(glob):
            made.append(re.escape(glob[at]))
            at += 1
        elif end > 0:
            inside, at = glob[at:end], end + 1
            negated = "^" if inside[0] in "!^" else ""
            signs = re.sub(r"([\\\[&~|])", r"\\\1", inside[len(negated) :])
            made.append(f"[{negated}{signs}]")
        elif sign == "{":
            open_braces += 1
            made.append("(?:")
        elif sign == "}" and open_braces:
            open_braces -= 1
            made.append(")")
        else:
            special = {"*": ".*", "?": "."} | ({",": "|"} if open_braces else {})
            made.append(special.get(sign) or re.escape(sign))
    try:
        return re.compile("".join(made), re.DOTALL)
    except re.error:  # Spark refuses such a glob, too
        return re.compile(re.escape(glob))


def _folders(place: str, opened: Open) -> Iterator[str]:
    """Yield the folders that a glob matches, or the place itself if it is not a glob."""
    found = _GLOB.search(place)
    if found is None:
        yield place
        return
    if "{" in place:
        raise CannotRead(
            f"The source reads {place}, and floodmark does not follow alternatives in braces.",
            do="Name one of the folders: --input PATH.",
        )
    base, _, _ = place[: found.start()].rpartition("/")
    folders = [base or "/"]
    for pattern in place[len(base) + 1 :].split("/"):
        folders = [below for folder in folders for below in _matching(folder, pattern, opened)]
        if len(folders) > _MOST_FOLDERS:
            raise _too_many(place, f"{_MOST_FOLDERS:,} folders")
    yield from folders


def _matching(folder: str, pattern: str, opened: Open) -> list[str]:
    names = sorted(opened(folder).level().folders)
    return [f"{folder.rstrip('/')}/{name}" for name in names if fnmatchcase(name, pattern)]


def _too_many(place: str, what: str) -> CannotRead:
    return CannotRead(f"{place} has more than {what}: they are not listed.")


def _in_folder(folder: str, everything: bool, opened: Open) -> Iterable[FileInfo]:
    files = opened(folder)
    level = files.level()
    partitioned = any("=" in name for name in level.folders)
    listing = files.list(most=_MOST_FILES)
    if len(listing.files) >= _MOST_FILES:
        raise _too_many(folder, f"{_MOST_FILES:,} files")
    for file in listing.files:
        parts = file.path.split("/")
        deep = everything or partitioned
        if (deep or len(parts) == 1) and not any(map(is_hidden, parts)):
            yield file


def is_hidden(name: str) -> bool:
    """Whether Spark's listing leaves a name out; `_day=1` is the folder of a partition."""
    return (
        (name.startswith("_") and "=" not in name) or name.startswith(".") or "._COPYING_" in name
    )


def oldest_taken_ms(newest_ms: int | None, options: Mapping[str, str]) -> int | None:
    """Return the time before which files are never read: maxFileAge before the newest seen file.

    Spark ignores maxFileAge only with `latestFirst` and a limit for each batch.
    """
    limited = "maxfilespertrigger" in options or "maxbytespertrigger" in options
    if newest_ms is None or (limited and options.get("latestfirst", "").lower() == "true"):
        return None
    match = _AGE.fullmatch(options.get("maxfileage", "").strip())
    age = int(match[1]) * _UNIT_MS[(match[2] or "ms").lower()] if match else _USUAL_AGE_MS
    return newest_ms - age
