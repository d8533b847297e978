"""Lets Spark create an empty checkpoint of the new code, for a migration."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from floodmark.changes.planners.kept_operators import Drawn, drawn_checkpoint
from floodmark.checkpoint.commits import CommitEntry
from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS
from floodmark.checkpoint.offsets import OffsetEntry
from floodmark.checkpoint.outline import Outline
from floodmark.engine.app.built import Built
from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.code.initial_values import initial_values
from floodmark.engine.code.outline import CHECKPOINT, outline
from floodmark.engine.code.query import Source, read_sources, source_folders
from floodmark.engine.pipelines.building import built
from floodmark.engine.pipelines.start_positions import Start
from floodmark.engine.spark.session import passing_log
from floodmark.redaction import Redaction
from floodmark.storage.files import open_files
from floodmark.storage.load import Entries, load


@dataclass(frozen=True)
class Drawing:
    spark: Any
    outline: Outline
    drawn: Drawn
    offsets: OffsetEntry
    """The offset entry of the batch without rows that Spark ran."""
    commit: CommitEntry
    folders: tuple[str, ...]
    """The folders of the code's own sources below sources/."""
    sources: tuple[Source, ...] = ()
    """The sources with all their options; these hold secrets, so none may be shown."""


@dataclass(frozen=True)
class ApplicationCode:
    """An application, and the options to run it with."""

    app: str
    settings: Mapping[str, str]
    conf: Mapping[str, str]
    """Settings of the Spark session."""
    start: Start | None = None
    script: ScriptOptions | None = None
    checkpoints: tuple[str, ...] = ()
    """Locations of checkpoints: of several queries, the one that uses such a location is meant."""

    @contextlib.contextmanager
    def built(self) -> Iterator[Built]:
        with (
            passing_log("migrate") as log,
            built(
                self.app,
                self.settings,
                start=self.start,
                conf=self.conf,
                log=log,
                stdout_to_stderr=True,
                script=self.script,
                checkpoints=self.checkpoints,
            ) as found,
        ):
            yield found


@contextlib.contextmanager
def drawing(
    code: ApplicationCode,
    conf: Mapping[str, str],
    redaction: Redaction | None = None,
    pinned: Mapping[str, str] | None = None,
) -> Iterator[Drawing]:
    """Outline the code in a session that lives as long as the `with`.

    `pinned` holds the settings that the old checkpoint pins, and `conf` those that override them.
    """
    with (
        code.built() as one,
        tempfile.TemporaryDirectory(prefix="floodmark-drawn-", ignore_cleanup_errors=True) as place,
    ):
        partitions = one.spark.conf.get(SHUFFLE_PARTITIONS)
        pins = None if pinned is None else {SHUFFLE_PARTITIONS: partitions, **pinned}
        own = conf if pinned is not None else {SHUFFLE_PARTITIONS: partitions, **conf}
        found = outline(one.writer, own, place, redaction, pins)
        files = open_files(f"{place}/{CHECKPOINT}")
        loaded = load(files, Entries.ALL)
        initial = initial_values(one.writer)
        drawn = drawn_checkpoint(files, loaded, found.tree, initial, one.spark.version)
        folders = source_folders(one.writer)
        sources = read_sources(one.writer)
        yield Drawing(
            one.spark, found, drawn, loaded.offsets[0], loaded.commits[0], folders, sources
        )
