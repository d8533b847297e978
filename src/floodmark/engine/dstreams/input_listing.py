"""Lists the files that a file stream sees, by Hadoop's own listing, as the stream makes it."""

from __future__ import annotations

from typing import Any


def listed(spark: Any, directory: str) -> list[tuple[str, int]]:
    """Each file of the folder, or of those that its glob matches, with the time of its change."""
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
