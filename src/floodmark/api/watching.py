"""The verb `watch`: looks at a checkpoint again and again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.addresses import public_url
from floodmark.api.arguments import Storage, structured
from floodmark.errors import FloodmarkError, WrongUse

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.connectors.behind import Lag
    from floodmark.fleet.sighting import Sighting


def watch(
    path: str,
    *,
    interval: float = 2.0,
    count: int | None = None,
    once: bool = False,
    sources: bool = False,
    bootstrap_servers: str | None = None,
    kafka_config: str | Path | Mapping[str, str] | None = None,
    table: str | None = None,
    input: str | None = None,
    timeout: float = 5.0,
    source_kinds: Mapping[str, str] | None = None,
    storage: Storage | None = None,
) -> Iterator[Sighting]:
    """A look at the checkpoint every `interval` seconds: `count` of them, or until it is closed.

    The sources are asked as `lag` asks them. A checkpoint that cannot be read at first is an error;
    one that vanishes later says so in the look's `problem`.
    """
    if interval <= 0:
        raise WrongUse(f"--interval {interval:g}: no time between two looks", do="Give 1 or more.")
    if count is not None and count < 1:
        raise WrongUse(f"--count {count}: at least one look is needed", do="Give 1 or more.")
    if once and count not in (None, 1):
        raise WrongUse("--once and --count exclude each other", do="Give one of them.")

    def asked() -> Lag | None:
        from floodmark.api.lagging import lag

        try:
            return lag(
                path,
                sources=sources,
                bootstrap_servers=bootstrap_servers,
                kafka_config=kafka_config,
                table=table,
                input=input,
                timeout=timeout,
                source_kinds=source_kinds,
                storage=storage,
            )
        except WrongUse:
            raise
        except FloodmarkError:
            return None  # what is wrong with the checkpoint itself, the look says

    def looks() -> Iterator[Sighting]:
        left = 1 if once else count
        first = True
        while left is None or left > 0:
            began = time.monotonic()
            try:
                yield _look(path, storage, asked())
            except FloodmarkError as error:
                if first:
                    raise
                yield _problem(path, error)
            first, left = False, None if left is None else left - 1
            if left != 0:
                time.sleep(max(0.0, interval - (time.monotonic() - began)))

    return looks()


def _look(path: str, storage: Storage | None, lag: Lag | None) -> Sighting:
    from dataclasses import replace

    from floodmark.fleet.progress_lines import by_batch
    from floodmark.fleet.sighting import LAST, sighting
    from floodmark.storage.files import open_files
    from floodmark.storage.load import load
    from floodmark.web.reading import read_progress

    files = open_files(str(path), storage)
    found = structured(load(files))
    recent = found.offset_ids[-LAST:]
    if any(batch not in found.offsets for batch in recent):
        found = load(files, batches=recent)
    progress = by_batch(read_progress(files))
    seen = sighting(found, progress, lag, time.time_ns() // 1_000_000)
    return replace(seen, path=public_url(str(path)))


def _problem(path: str, error: FloodmarkError) -> Sighting:
    from floodmark.fleet.sighting import Sighting

    return Sighting(public_url(str(path)), time.time_ns() // 1_000_000, problem=error.what)
