"""Input files that the next batch reads and that are gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from floodmark.checkpoint.filelog import (
    SourceFile,
    files_between,
    merge_source_logs,
    names_to_read,
    parse_source_log,
)
from floodmark.checkpoint.layout import SOURCES
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.sources import SourceKind, parse_log_offset, parse_offset_text
from floodmark.engine.look import Objection, Situation

GONE = "input-file-gone"
NAMES = (GONE,)
# Enough to name the trouble; a batch of more files than this is not looked at to its end.
_MOST = 2000


def judge(situation: Situation) -> Iterator[Objection]:
    checkpoint = situation.saved.checkpoint
    if checkpoint is None or checkpoint.latest_batch is None:
        return
    for source in checkpoint.sources:
        if source.kind is not SourceKind.FILE:
            continue
        pending = _pending(situation, checkpoint, source.id)[:_MOST]
        gone = [file for file in pending if not _exists(situation, file)]
        if gone:
            yield Objection(
                GONE,
                f"{len(gone)} input files that the next batch reads are gone, for example "
                f"{unquote(gone[0].path)}",
                "They were seen and not yet committed. Spark fails on them, or skips them "
                "silently where spark.sql.files.ignoreMissingFiles is set.",
                "Put them back under the same names.",
            )


def _pending(situation: Situation, checkpoint: Checkpoint, source: str) -> list[SourceFile]:
    """Seen by the source, and in no committed batch."""
    folder = f"{SOURCES}/{source}"
    names = names_to_read(situation.files.level(folder).files)
    read = situation.files.read_many(f"{folder}/{name}" for name in names)
    logs = {
        path.rsplit("/", 1)[1]: parse_source_log(data)
        for path, data in read.items()
        if isinstance(data, bytes)
    }
    files = merge_source_logs(logs)
    last = max((file.batch_id for file in files), default=-1)
    return list(files_between(files, _committed_offset(checkpoint, source), last))


def _committed_offset(checkpoint: Checkpoint, source: str) -> int | None:
    """Where the next batch begins in the source's own log."""
    batch = checkpoint.latest_batch
    assert batch is not None
    if checkpoint.in_flight_batch is not None:
        batch -= 1
    entry = checkpoint.offsets.get(batch)
    text = entry.of(source) if entry else None
    return None if text is None else parse_log_offset(parse_offset_text(text))


def _exists(situation: Situation, file: SourceFile) -> bool:
    if file.path.startswith("file:"):
        return Path(unquote("/" + file.path[len("file:") :].lstrip("/"))).exists()
    path = situation.spark._jvm.org.apache.hadoop.fs.Path(
        situation.spark._jvm.java.net.URI(file.path)
    )
    conf = situation.spark._jsparkSession.sessionState().newHadoopConf()
    return bool(path.getFileSystem(conf).exists(path))
