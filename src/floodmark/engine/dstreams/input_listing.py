"""Lists the files that a file stream sees, with Hadoop's own listing, as the stream does."""

from __future__ import annotations

from typing import Any


def listed(spark: Any, directory: str) -> list[tuple[str, int]]:
    """Return the files of the folder, or of folders that its glob matches, with their times."""
    jvm = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(directory)
    system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    found: list[tuple[str, int]] = []
    for folder in system.globStatus(path) or ():
        if not folder.isDirectory():
            continue
        for status in system.listStatus(folder.getPath()):
            if not status.isDirectory() and not str(status.getPath().getName()).startswith("."):
                found.append((str(status.getPath().toString()), int(status.getModificationTime())))
    return found
