"""Reads everything that fsspec reaches: S3, HDFS, Azure, Google, memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, TypeVar

import fsspec

from floodmark.addresses import public_url
from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.relative_path import RelativePath, folder_path
from floodmark.errors import CannotRead, FileGone, FloodmarkError, WrongUse
from floodmark.limits import Held, check_size
from floodmark.storage import webhdfs
from floodmark.storage.complaints import is_no_bucket, no_bucket
from floodmark.storage.files import (
    Folder,
    Listing,
    first_line,
    folder_of,
    is_a_file,
    listing_of,
    unreadable,
)
from floodmark.storage.listing import s3_listing

# Hadoop's names for storages that have another name in fsspec.
_SCHEMES = {"s3a": "s3", "s3n": "s3", "wasbs": "abfs", "wasb": "abfs"}
# The package to install for a scheme; fsspec's own error names the others.
_DRIVERS = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "'floodmark[s3]'"),
    **dict.fromkeys(("webhdfs", "swebhdfs"), "'floodmark[hdfs]'"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl", "wasb", "wasbs"), "adlfs"),
    **dict.fromkeys(("hdfs", "viewfs"), "pyarrow"),
    **dict.fromkeys(("http", "https"), "requests aiohttp"),
    "oss": "ossfs",
}
_FLAT = {"s3", "abfs", "gs"}
_UNKNOWN = "Protocol not known"
_AT_ONCE = 16
_LARGE = 1 << 20
# Timeouts of botocore, below s3fs' own. With the defaults of both, one read of a store that
# drops every connection is tried 250 times, for three minutes, before the user sees an error.
_RETRIES: dict[str, Any] = {"total_max_attempts": 3, "mode": "standard"}
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class RemoteFiles:
    root: str
    fs: Any
    folder: str
    large: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """Sizes of large files from a listing, so that a read need not ask for them."""

    @property
    def reads_cost(self) -> bool:
        return "memory" not in _protocols(self.fs)

    @staticmethod
    def open(location: str, options: dict[str, Any]) -> RemoteFiles:
        scheme, separator, rest = location.partition("://")
        url = f"{_SCHEMES.get(scheme, scheme)}://{rest}" if separator else location
        # A cached listing would show a running query as it was, not as it is.
        defaults: dict[str, Any] = {"use_listings_cache": False}
        if url.startswith("s3://"):
            # With more than one, s3fs asks for each file's size before it reads it: twice the
            # requests.
            defaults["max_concurrency"] = 1
            defaults["config_kwargs"] = {"retries": _RETRIES, **options.get("config_kwargs", {})}
            options = {key: value for key, value in options.items() if key != "config_kwargs"}
        try:
            fs, folder = fsspec.core.url_to_fs(url, **{**defaults, **options})
        except ImportError as error:
            raise _no_driver(location, scheme, error) from None
        except (ValueError, TypeError) as error:
            # A scheme that fsspec knows only after its driver is loaded, such as abfss.
            if scheme in _DRIVERS and _UNKNOWN in str(error):
                raise _no_driver(location, scheme, error) from None
            raise WrongUse(
                f"{location}: not a location that fsspec can open", str(error), "Check the scheme."
            ) from None
        except Exception as error:  # a driver that needs its server, or Java, at once
            raise _not_opened(location, scheme, error) from None
        if url.startswith("s3://"):
            fs.retries = _RETRIES["total_max_attempts"]
        elif "webhdfs" in _protocols(fs):
            webhdfs.limit_waits(fs)
        root = public_url(location.rstrip("/"))
        return RemoteFiles(root, fs, folder.rstrip("/"))

    def list(self, folder: str = "", most: int | None = None) -> Listing:
        place = self._path(folder)
        found: dict[str, dict[str, Any]] = {}
        whole = True
        with contextlib.suppress(FileGone):
            found, whole = self._ask(self._shown(folder), lambda: self._below(place, most))
        listing = self._listed(place, found, whole)
        if not listing.files and not listing.unreadable and not folder:
            kind = self._kind(place, bool(found))
            if kind == "file":
                raise is_a_file(self.root)
            if kind is None:
                raise self._not_there()
        return listing

    def _below(self, place: str, most: int | None) -> tuple[dict[str, dict[str, Any]], bool]:
        if self._is_s3 and place:
            return s3_listing.all_below(self.fs, place, most)
        found = self.fs.find(place, detail=True)
        # adlfs gives a list of one name where this is a file.
        return found if isinstance(found, dict) else {}, True

    def _listed(self, place: str, found: dict[str, dict[str, Any]], whole: bool) -> Listing:
        self._note_sizes(found.items())
        start = len(self.folder) + 1
        listed = (
            FileInfo(name[start:], int(info.get("size") or 0), _mtime_ms(info))
            for name, info in found.items()
            # S3's console leaves empty objects named `folder/` behind.
            if info.get("type") != "directory" and name != place and not name.endswith("/")
        )
        return listing_of(listed, whole)

    def page(self, after: str) -> Listing | None:
        """List with one request the files whose names come after a name; only S3 can do that."""
        if not self._is_s3:
            return None
        found, whole = self._ask(
            self.root, lambda: s3_listing.one_page(self.fs, self.folder, After=after)
        )
        # The next page begins after a name, so an odd name does not end the listing.
        return replace(self._listed(self.folder, found, whole), complete=whole)

    def level(self, folder: str = "") -> Folder:
        place = self._path(folder)
        try:
            found = self._ask(self._shown(folder), lambda: self._level(place))
        except FileGone:
            return Folder((), ())
        self._note_sizes(found.items())
        start = len(place) + 1
        names = (
            (name.rstrip("/")[start:], info.get("type") == "directory")
            for name, info in found.items()
        )
        return folder_of((name, is_folder) for name, is_folder in names if name)

    def _level(self, place: str) -> dict[str, dict[str, Any]]:
        if self._is_s3 and place:
            return s3_listing.level(self.fs, place)
        return {info["name"]: info for info in self.fs.ls(place, detail=True)}

    def _note_sizes(self, found: Iterable[tuple[str, dict[str, Any]]]) -> None:
        for name, info in found:
            size = info.get("size")
            if isinstance(size, int) and size > _LARGE:
                self.large[name] = size
            elif self.large:
                self.large.pop(name, None)

    def read(self, path: RelativePath) -> bytes:
        place = self.file_path(path)
        check_size(path, self.large.get(place, 0))
        data: bytes = self._ask(path, lambda: self.fs.cat_file(place))
        return data

    def read_many(self, paths: Iterable[RelativePath]) -> dict[str, bytes | FloodmarkError]:
        wanted = list(paths)
        with ThreadPoolExecutor(min(_AT_ONCE, len(wanted) or 1)) as pool:
            held = Held()
            read = pool.map(lambda path: self._read_or_error(path, held), wanted)
            return dict(zip(wanted, read, strict=True))

    def _read_or_error(self, path: RelativePath, held: Held) -> bytes | FloodmarkError:
        try:
            return held.add(path, self.read(path))
        except FloodmarkError as error:
            return error

    def write(self, path: RelativePath, data: bytes) -> None:
        place = self.file_path(path)
        if self.is_webhdfs:
            self._ask(path, lambda: webhdfs.write_file(self.fs, place, data))
            return
        self._make_parent(path)
        try:
            self._ask(path, lambda: self.fs.pipe_file(place, data))
        except FileGone:
            if not self._is_flat:
                raise
            raise self._no_bucket() from None

    def put(self, path: RelativePath, local: str) -> None:
        if self.is_webhdfs:
            self._ask(path, lambda: self._put_on_hdfs(path, local))
            return
        self._make_parent(path)
        self._ask(path, lambda: self.fs.put_file(local, self.file_path(path)))

    def _put_on_hdfs(self, path: RelativePath, local: str) -> None:
        with open(local, "rb") as data:
            webhdfs.write_file(self.fs, self.file_path(path), data)

    def create(self, path: RelativePath, data: bytes) -> bool:
        place = self.file_path(path)
        if self.is_webhdfs:
            return self._ask(path, lambda: webhdfs.create_file(self.fs, place, data))
        self._make_parent(path)
        try:
            self.fs.pipe_file(place, data, mode="create")
        except Exception as error:
            if isinstance(error, FileExistsError) or _is_taken(error):
                return False
            if isinstance(error, FileNotFoundError) and self._is_flat:
                raise self._no_bucket() from None
            raise unreadable(path, error) from None
        return True

    def _no_bucket(self) -> CannotRead:
        """Return the error of a failed write: without folders, only the bucket can be missing."""
        return no_bucket(self.root, self.folder.partition("/")[0])

    @property
    def is_webhdfs(self) -> bool:
        return "webhdfs" in _protocols(self.fs)

    @property
    def _is_s3(self) -> bool:
        return "s3" in _protocols(self.fs)

    @property
    def _is_flat(self) -> bool:
        return not _FLAT.isdisjoint(_protocols(self.fs))

    def _make_parent(self, path: RelativePath) -> None:
        # Object stores have no folders; HDFS and the memory file system do.
        if not self._is_flat:
            parent = self.file_path(path).rsplit("/", 1)[0]
            self._ask(path, lambda: self.fs.makedirs(parent, exist_ok=True))

    def delete(self, paths: Iterable[RelativePath]) -> None:
        for path in paths:
            try:
                self._ask(path, lambda path=path: self.fs.rm_file(self.file_path(path)))  # type: ignore[misc]
            except FileGone:
                continue

    def below(self, folder: RelativePath) -> RemoteFiles:
        place = self._path(RelativePath(folder))
        return RemoteFiles(f"{self.root}/{folder}", self.fs, place, self.large)

    def _kind(self, place: str, has_entries: bool) -> str | None:
        """Return "file", "directory", or None if there is nothing."""
        if self._is_s3 and has_entries:
            return "directory"
        try:
            if self._is_s3 and "/" in place:
                is_file = self._ask(self.root, lambda: s3_listing.is_object(self.fs, place))
                return "file" if is_file else None
            return str(self._ask(self.root, lambda: self.fs.info(place)).get("type"))
        except FileGone:
            return None

    def _not_there(self) -> CannotRead:
        """Return the error; S3 answers for a missing bucket as for an empty one, unless asked."""
        if self._is_s3:
            bucket = self.fs.split_path(self.folder)[0]
            try:
                self.fs.call_s3("head_bucket", Bucket=bucket, **self.fs.req_kw)
            except FileNotFoundError:
                return no_bucket(self.root, bucket)
            except Exception as error:
                return unreadable(self.root, error)
        return unreadable(self.root, FileNotFoundError())

    def _shown(self, relative: str) -> str:
        return f"{self.root}/{relative}" if relative else self.root

    def _path(self, relative: str) -> str:
        """Return a path below the root; no other path gets past this check."""
        relative = folder_path(relative)
        return f"{self.folder}/{relative}" if relative else self.folder

    def file_path(self, path: RelativePath) -> str:
        """Return the file's name for its driver."""
        return f"{self.folder}/{RelativePath(path)}"

    def _ask(self, place: str, question: Callable[[], _Result]) -> _Result:
        """Call a driver; turn whatever it raises into an error of floodmark."""
        try:
            return question()
        except FileNotFoundError as error:
            if is_no_bucket(error):
                raise self._not_there() from None
            raise FileGone(f"{place} is not there") from None
        except FloodmarkError:
            raise
        except Exception as error:
            raise unreadable(place, error) from None


def _no_driver(location: str, scheme: str, error: Exception) -> CannotRead:
    return CannotRead(
        f"{location}: no installed package reads {scheme}://",
        str(error),
        f"Install one: pip install {_DRIVERS[scheme]}"
        if scheme in _DRIVERS
        else "Install the fsspec driver of that storage with pip.",
    )


def _not_opened(location: str, scheme: str, error: Exception) -> CannotRead:
    if scheme in ("hdfs", "viewfs"):
        return CannotRead(
            f"{location}: the driver for {scheme}:// does not start",
            f"It needs Hadoop's own libraries here: {first_line(error)}.",
            "Use webhdfs://HOST:9870/PATH, which does not need them.",
        )
    return unreadable(location, error)


def _protocols(fs: Any) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def _is_taken(error: BaseException) -> bool:
    """Whether the object exists: S3 answers 412 for If-None-Match, and 409 during another write.

    Other servers use other words.
    """
    response: dict[str, Any] = getattr(error.__cause__, "response", None) or {}
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status in (409, 412) or "PreconditionFailed" in str(response.get("Error"))


def _mtime_ms(info: dict[str, Any]) -> int | None:
    for key in ("LastModified", "mtime", "modificationTime", "created", "last_modified"):
        value = info.get(key)
        if isinstance(value, datetime):
            zoned = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
            return int(zoned.timestamp() * 1000)
        if isinstance(value, (int, float)):
            return int(value if value > 10**11 else value * 1000)
    return None
