"""Provides `watch`: examines a checkpoint again and again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from floodmark.addresses import public_url
from floodmark.api.arguments import MOST_SECONDS, Storage, structured
from floodmark.api.lagging import LagOptions, ask_lag, client_settings
from floodmark.api.looking import with_kinds
from floodmark.checkpoint.live_answers import SourcePlaces
from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import CannotRead, FloodmarkError, MalformedFile, NoAnswer, WrongUse
from floodmark.fleet.progress_lines import by_batch
from floodmark.fleet.sighting import LAST, Sighting, sighting
from floodmark.storage.files import Files, Listing, open_files
from floodmark.storage.load import load, load_listed
from floodmark.web.checkpoint_page import read_progress


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
    """Yield a look at the checkpoint every `interval` seconds: `count` looks, or until closed.

    The sources are asked as `lag` asks them. A checkpoint that cannot be read at first is an error;
    a checkpoint that vanishes later is reported in the look's `problem`.
    """
    if not 0 < interval <= MOST_SECONDS:
        raise WrongUse(f"--interval {interval:g}: nobody can wait so long", do="Give 1 or more.")
    if count is not None and count < 1:
        raise WrongUse(f"--count {count}: at least one look is needed", do="Give 1 or more.")
    if once and count not in (None, 1):
        raise WrongUse("--once and --count exclude each other", do="Give one of them.")

    if not 0 < timeout <= MOST_SECONDS:
        raise WrongUse(f"--timeout {timeout:g}: no time for an answer", do="Give 1 or more.")
    config = client_settings(kafka_config)
    places = SourcePlaces(sources, bootstrap_servers, table, None, input)
    lag_options = LagOptions(places, storage, config, timeout)

    def look() -> Sighting:
        files = open_files(str(path), storage)
        checkpoint = with_kinds(_recent(files), source_kinds)
        lag = None
        # A look itself reports what is wrong with the checkpoint.
        with contextlib.suppress(CannotRead, MalformedFile, NoAnswer):
            lag = ask_lag(files, checkpoint, lag_options)
        progress = by_batch(read_progress(files))
        seen = sighting(checkpoint, progress, lag, time.time_ns() // 1_000_000)
        return replace(seen, path=public_url(str(path)))

    def looks() -> Iterator[Sighting]:
        left = 1 if once else count
        first = True
        while left is None or left > 0:
            began = time.monotonic()
            try:
                yield look()
            except FloodmarkError as error:
                if first:
                    raise
                yield _problem(path, error)
            first, left = False, None if left is None else left - 1
            if left != 0:
                time.sleep(max(0.0, interval - (time.monotonic() - began)))

    return looks()


def _recent(files: Files) -> Checkpoint:
    """Load a checkpoint with the newest batches, at the cost of one listing."""
    found = structured(load(files))
    recent = found.offset_ids[-LAST:]
    if all(batch in found.offsets for batch in recent):
        return found
    odd = tuple((one.path, one.reason) for one in found.unreadable)
    return load_listed(files, Listing(found.files, found.complete, odd), batches=recent)


def _problem(path: str, error: FloodmarkError) -> Sighting:
    return Sighting(public_url(str(path)), time.time_ns() // 1_000_000, problem=error.what)
