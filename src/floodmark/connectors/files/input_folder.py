"""Which files of an input folder Spark's file source would take. Pure but for the listing.

Spark lists the folder (or what its glob matches), leaves hidden names out, goes into folders only
where they are partitions (`day=1`) or where recursiveFileLookup says so, and never takes a file
that is much older than the newest one it has seen (maxFileAge).
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
    """As `opened` takes it: Spark writes file names as URIs, with %20 for a space."""
    scheme, colon, rest = path.partition(":")
    return "/" + unquote(rest).lstrip("/") if scheme == "file" and colon else path


def same_file(path: str) -> str:
    """One name for a file, however Spark or the user writes its address."""
    return re.sub(r"^[A-Za-z][\w+.-]*:(?://[^/]*)?/*", "/", address(path))


def listed_files(
    place: str, options: Mapping[str, str], opened: Open
) -> Iterator[tuple[str, FileInfo]]:
    """(address, file) of everything that the source would see at a path or glob."""
    everything = options.get("recursivefilelookup", "").lower() == "true"
    for folder in _folders(place.rstrip("/") or "/", opened):
        for file in _in_folder(folder, everything, opened):
            name = file.path.rpartition("/")[2]
            if passes_filter(name, options):
                yield f"{folder.rstrip('/')}/{file.path}", file


def passes_filter(name: str, options: Mapping[str, str]) -> bool:
    """Whether pathGlobFilter takes a file of this name: `*.{csv,txt}` is Hadoop's, not Python's."""
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
    except re.error:  # Spark refuses it as well
        return re.compile(re.escape(glob))


def _folders(place: str, opened: Open) -> Iterator[str]:
    """The folders that a glob matches; the place itself where it is none."""
    found = _GLOB.search(place)
    if found is None:
        yield place
        return
    if "{" in place:
        raise CannotRead(
            f"Its input is {place}, and floodmark does not follow alternatives in braces.",
            do="Name one of its folders: --input PATH.",
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
    """What Spark's listing leaves out; `_day=1` is a partition's folder."""
    return (
        (name.startswith("_") and "=" not in name) or name.startswith(".") or "._COPYING_" in name
    )


def oldest_taken_ms(newest_ms: int | None, options: Mapping[str, str]) -> int | None:
    """Files from before are never taken: maxFileAge counts from the newest file seen.

    It is ignored for `latestFirst` where a batch has a limit, and only there.
    """
    limited = "maxfilespertrigger" in options or "maxbytespertrigger" in options
    if newest_ms is None or (limited and options.get("latestfirst", "").lower() == "true"):
        return None
    match = _AGE.fullmatch(options.get("maxfileage", "").strip())
    age = int(match[1]) * _UNIT_MS[(match[2] or "ms").lower()] if match else _USUAL_AGE_MS
    return newest_ms - age
