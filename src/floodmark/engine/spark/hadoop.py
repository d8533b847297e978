"""Reads and writes storage as Spark does: Hadoop's file systems behind the `Files` interface.

Where Spark can keep a checkpoint, this module can read and write it, with the same addresses
(s3a://, hdfs://, abfss://) and the same credentials. On a local disk the operating system's own
calls are faster, so `checkpoint_files` chooses those there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from floodmark import limits
from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.relative_path import RelativePath, folder_path
from floodmark.errors import CannotRead, FileGone, FloodmarkError
from floodmark.storage.complaints import known_complaint
from floodmark.storage.files import (
    Folder,
    Listing,
    WritableFiles,
    folder_of,
    listing_of,
    open_files,
)

_Result = TypeVar("_Result")
# A store with this capability writes a file only where there is none; S3A since Hadoop 3.4.2.
_CONDITIONAL = "fs.option.create.conditional.overwrite"
# Here `create` without overwriting is one step; S3A checks first and writes later.
_ATOMIC = {"hdfs", "viewfs", "webhdfs", "abfs", "abfss", "gs"}
_SETTLED_SECONDS = 2.0
_LONGEST_ARRAY = 2**31 - 16  # a JVM's limit


def qualified(spark: Any, location: str) -> str:
    """Return the location with its scheme, as Spark resolves it: `data/ck` → `file:/…/data/ck`."""
    path = spark._jvm.org.apache.hadoop.fs.Path(location)
    return str(_asked(location, lambda: _file_system(spark, path).makeQualified(path)).toString())


def checkpoint_files(spark: Any, location: str) -> WritableFiles:
    """Return the folder at a location, without listing or creating it."""
    if "://" not in location and not location.startswith("file:"):
        location = qualified(spark, location)
    if location.startswith("file:"):
        # Spark takes the location literally; percent signs in it are not an encoding.
        path = "/" + location[len("file:") :].lstrip("/")
        return open_files(path)
    path = spark._jvm.org.apache.hadoop.fs.Path(location)
    return HadoopFiles(location, spark, _asked(location, lambda: _file_system(spark, path)))


def _file_system(spark: Any, path: Any) -> Any:
    return path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())


@dataclass(frozen=True)
class HadoopFiles:
    root: str
    spark: Any
    fs: Any

    reads_cost = True

    def list(self, folder: str = "", most: int | None = None) -> Listing:
        def walk() -> list[FileInfo]:
            found: list[FileInfo] = []
            base = len(str(self.fs.makeQualified(self._path("")).toString())) + 1
            statuses = self.fs.listFiles(self._path(folder), True)
            while statuses.hasNext() and (most is None or len(found) < most):
                status = statuses.next()
                name = str(status.getPath().toString())[base:]
                size, modified = int(status.getLen()), int(status.getModificationTime())
                found.append(FileInfo(name, size, modified))
            return found

        try:
            files = self._asked(folder, walk)
        except FileGone:
            files = []
        return listing_of(files, most is None or len(files) < most)

    def level(self, folder: str = "") -> Folder:
        def look() -> list[tuple[str, bool]]:
            statuses = self.fs.listStatus(self._path(folder))
            return [(str(one.getPath().getName()), bool(one.isDirectory())) for one in statuses]

        try:
            named = self._asked(folder, look)
        except FileGone:
            return Folder((), ())
        return folder_of(named)

    def read(self, path: RelativePath) -> bytes:
        def whole() -> bytes:
            stream = self.fs.open(self._path(RelativePath(path)))
            try:
                return bytes(stream.readNBytes(most + 1))
            finally:
                stream.close()

        kind = limits.kind_of(path)
        most = min(limits.current().of(kind), _LONGEST_ARRAY)
        data = self._asked(path, whole)
        if len(data) > most:
            raise limits.over_limit(path, None, kind)
        return data

    def read_many(self, paths: Iterable[RelativePath]) -> dict[str, bytes | FloodmarkError]:
        found: dict[str, bytes | FloodmarkError] = {}
        for path in paths:
            try:
                found[path] = self.read(path)
            except FloodmarkError as error:
                found[path] = error
        return found

    def write(self, path: RelativePath, data: bytes) -> None:
        self._asked(path, lambda: self._put(path, data, overwrite=True))

    def put(self, path: RelativePath, local: str) -> None:
        def copy() -> None:
            source = self.spark._jvm.org.apache.hadoop.fs.Path(f"file:{local}")
            self.fs.copyFromLocalFile(False, True, source, self._path(RelativePath(path)))

        self._asked(path, copy)

    def create(self, path: RelativePath, data: bytes) -> bool:
        if self._asked(path, lambda: self.fs.exists(self._path(RelativePath(path)))):
            return False
        conditional = self._asked(path, self._writes_conditionally)
        try:
            if conditional:
                self._asked(path, lambda: self._put_conditionally(path, data))
            else:
                self._asked(path, lambda: self._put(path, data, overwrite=False))
        except CannotRead as error:
            words = f"{error.what} {error.why}"
            if "AlreadyExists" in words or (conditional and _is_precondition(words)):
                return False
            raise
        return conditional or self._creates_atomically or self._stayed(path, data)

    def _writes_conditionally(self) -> bool:
        return bool(self.fs.hasPathCapability(self._path(""), _CONDITIONAL))

    def _put_conditionally(self, path: RelativePath, data: bytes) -> None:
        builder = self.fs.createFile(self._path(RelativePath(path))).overwrite(True)
        _write(builder.must(_CONDITIONAL, "true").build(), data)

    @property
    def _creates_atomically(self) -> bool:
        return self.root.partition(":")[0] in _ATOMIC

    def _stayed(self, path: RelativePath, data: bytes) -> bool:
        """Whether this create won: of two that succeed the later one stays, so wait and read."""
        time.sleep(_SETTLED_SECONDS)
        return self.read(path) == data

    def _put(self, path: RelativePath, data: bytes, overwrite: bool) -> None:
        _write(self.fs.create(self._path(RelativePath(path)), overwrite), data)

    def delete(self, paths: Iterable[RelativePath]) -> None:
        for path in paths:
            self._delete(RelativePath(path))

    def _delete(self, path: RelativePath) -> None:
        self._asked(path, lambda: self.fs.delete(self._path(path), False))

    def below(self, folder: RelativePath) -> HadoopFiles:
        return HadoopFiles(f"{self.root.rstrip('/')}/{RelativePath(folder)}", self.spark, self.fs)

    def _asked(self, path: str, question: Callable[[], _Result]) -> _Result:
        return _asked(path or self.root, question)

    def _path(self, relative: str) -> Any:
        relative = folder_path(relative)
        whole = f"{self.root.rstrip('/')}/{relative}" if relative else self.root
        return self.spark._jvm.org.apache.hadoop.fs.Path(whole)


def _write(stream: Any, data: bytes) -> None:
    try:
        stream.write(bytearray(data))
    finally:
        stream.close()


def _is_precondition(words: str) -> bool:
    """Whether S3 refused a write: 412 if the file exists, 409 for one of two writes at once."""
    signs = ("RemoteFileChanged", "PreconditionFailed", "Status Code: 412", "Status Code: 409")
    return any(sign in words for sign in signs)


def _asked(place: str, question: Callable[[], _Result]) -> _Result:
    """Call the JVM; turn whatever it throws into an error of floodmark."""
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        return question()
    except Py4JJavaError as error:
        raise storage_error(place, error.java_exception) from None
    except (Py4JError, ConnectionError) as error:  # its JVM has ended
        raise CannotRead(f"{place}: Spark does not answer", str(error)) from error


def storage_error(place: str, thrown: Any) -> CannotRead:
    """An exception of Hadoop's file systems, by its cause where that is known."""
    kind = str(thrown.getClass().getSimpleName())
    if kind == "FileNotFoundException":
        return FileGone(f"{place} is not there")
    words = str(thrown.getMessage() or kind)
    return known_complaint(place, OSError(f"{kind}: {words}")) or CannotRead(
        f"{place}: the storage answered with {kind}",
        words.splitlines()[0],
        "Check the address and the settings of spark.hadoop.fs; it may also be worth a second try.",
    )


_FILE_SYSTEMS = "org.apache.hadoop.fs."
_NEAR = 5
"""As many frames below the file system can be Java's own: those that parse a number, say."""
_OF_THE_SETTINGS = (
    "java.lang.IllegalArgumentException",  # a wrong address
    "java.lang.UnsupportedOperationException",
    "java.lang.LinkageError",  # jars that do not fit together
)


def is_of_storage(spark: Any, thrown: Any) -> bool:
    """Whether a file system of Hadoop's failed.

    Java calls most of that a failure of input or output. An answer that lacks what a file system
    counts on, such as a length, ends inside of the file system with another exception.
    """
    from py4j.java_gateway import is_instance_of

    def is_a(*kinds: str) -> bool:
        return any(is_instance_of(spark._sc._gateway, thrown, kind) for kind in kinds)

    if is_a("java.io.IOException"):
        return True
    if is_a(*_OF_THE_SETTINGS) and not is_a("java.lang.NumberFormatException"):
        return False
    frames = thrown.getStackTrace()
    return any(str(one.getClassName()).startswith(_FILE_SYSTEMS) for one in list(frames)[:_NEAR])
