"""Leaves out, or refuses, what a script writes with the JVM's own objects through py4j.

This module knows Spark's writers, Hadoop's and Java's own files, other programs and databases. It
does not know a class of the user's own that runs in the JVM.
"""

from __future__ import annotations

from typing import Any

from floodmark.engine.app.effects.sql_text import changes_something
from floodmark.engine.app.patching import Patches
from floodmark.engine.app.script_calls import Watch

WRITER = ("save", "saveAsTable", "insertInto", "json", "parquet", "text", "csv", "orc", "xml")
WRITER_V2 = ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions")
_FILE_SYSTEM = "org.apache.hadoop.fs.FileSystem"
_FILE_SYSTEM_ACTS = frozenset(
    {"append", "concat", "copyFromLocalFile", "create", "createNewFile", "delete", "deleteOnExit"}
    | {"mkdirs", "moveFromLocalFile", "rename", "setOwner", "setPermission", "setTimes", "truncate"}
)
_STREAM_WRITER = "org.apache.spark.sql.streaming.DataStreamWriter"
_STREAM_STARTS = frozenset({"start", "toTable"})
_BATCH_WRITER = "org.apache.spark.sql.DataFrameWriter"
_JVM_ACTS = {
    _FILE_SYSTEM: _FILE_SYSTEM_ACTS,
    _STREAM_WRITER: _STREAM_STARTS,
    _BATCH_WRITER: frozenset({*WRITER, "jdbc"}),
    f"{_BATCH_WRITER}V2": frozenset(WRITER_V2),
    "org.apache.spark.sql.SparkSession": frozenset({"sql"}),
}
_REFUSED = {
    "java.io.File": frozenset(
        {"createNewFile", "delete", "deleteOnExit", "mkdir", "mkdirs", "renameTo"}
        | {"setExecutable", "setLastModified", "setReadOnly", "setReadable", "setWritable"}
    ),
    "java.lang.ProcessBuilder": frozenset({"start"}),
    "java.lang.Runtime": frozenset({"exec"}),
    "java.net.DatagramSocket": frozenset({"send"}),
    "java.net.URL": frozenset({"openConnection", "openStream"}),
    "java.net.http.HttpClient": frozenset({"send", "sendAsync"}),
    "java.nio.channels.SocketChannel": frozenset({"connect"}),
    "java.sql.Driver": frozenset({"connect"}),
    "javax.sql.DataSource": frozenset({"getConnection"}),
    "org.apache.hadoop.fs.FileContext": frozenset({"create", "delete", "mkdir", "rename"}),
}
_REFUSED_STATIC = {
    "java.nio.file.Files": frozenset(
        {"copy", "createDirectories", "createDirectory", "createFile", "createLink", "delete"}
        | {"createSymbolicLink", "deleteIfExists", "move", "newBufferedWriter", "newByteChannel"}
        | {"newOutputStream", "setAttribute", "setLastModifiedTime", "write", "writeString"}
    ),
    "java.nio.channels.FileChannel": frozenset({"open"}),
    "java.nio.channels.SocketChannel": frozenset({"open"}),
    "java.sql.DriverManager": frozenset({"getConnection"}),
    "org.apache.hadoop.fs.FileUtil": frozenset(
        {"copy", "copyMerge", "fullyDelete", "fullyDeleteContents", "replaceFile", "symLink"}
    ),
}
_REFUSED_NEW = frozenset(
    {"java.io.FileOutputStream", "java.io.FileWriter", "java.io.PrintStream"}
    | {"java.io.PrintWriter", "java.io.RandomAccessFile", "java.net.Socket"}
)
_STATIC = "z:"
"""The prefix that py4j gives to the target of a static call."""
_NEEDED = frozenset({"sql", *_STREAM_STARTS, *_FILE_SYSTEM_ACTS} - {"delete", "mkdirs", "rename"})
"""Calls whose results a script needs to continue."""


def leave_out_jvm_calls(patches: Patches, watch: Watch) -> None:
    """Leave out a script's calls of the JVM's own objects: Hadoop's FileSystem, Spark's writers."""
    from py4j.java_gateway import JavaClass, JavaMember

    known = (*_JVM_ACTS.items(), *_REFUSED.items())
    acts = frozenset().union(*(names for _, names in (*known, *_REFUSED_STATIC.items())))

    def wrapper(original: Any) -> Any:
        def call(self: Any, *given: Any) -> Any:
            if self.name not in acts or not watch.is_users_call():
                return original(self, *given)
            owner = str(self.target_id).removeprefix(_STATIC)
            if self.name in _REFUSED_STATIC.get(owner, ()):
                raise watch.refuse(f"{owner}.{self.name}({_plain(given)})")
            kinds = [kind for kind, names in known if self.name in names]
            kind = next((one for one in kinds if _is_a(self, one)), None)
            if kind in _REFUSED:
                raise watch.refuse(f"{kind}.{self.name}({_plain(given)})")
            if kind is None or (self.name == "sql" and not changes_something(str(given[0]))):
                return original(self, *given)
            words = f"{kind.rpartition('.')[2]}.{self.name}({_plain(given)})"
            # A file system's `create` and `append` return a stream, a writer's return nothing.
            if self.name in _NEEDED and not kind.startswith(_BATCH_WRITER):
                raise watch.refuse(words)
            watch.skip(words)
            return True if kind == _FILE_SYSTEM else None

        return call

    def making(original: Any) -> Any:
        def make(self: Any, *given: Any) -> Any:
            if self._fqn in _REFUSED_NEW and watch.is_users_call():
                raise watch.refuse(f"{self._fqn}({_plain(given)})")
            return original(self, *given)

        return make

    patches.wrap(JavaMember, "__call__", wrapper)
    patches.wrap(JavaClass, "__call__", making)


def _is_a(member: Any, kind: str) -> bool:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

    if not isinstance(member.container, JavaObject):
        return False
    loader = SparkContext._gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return bool(loader.loadClass(kind).isInstance(member.container))


def _plain(given: tuple[Any, ...]) -> str:
    from py4j.java_gateway import JavaObject

    return ", ".join(
        str(one.toString()) if isinstance(one, JavaObject) else str(one) for one in given
    )
