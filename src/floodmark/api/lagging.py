"""Provides `lag`: how far a stream is behind its sources, according to the sources themselves."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.addresses import public_url
from floodmark.api.arguments import MOST_SECONDS, Storage, structured
from floodmark.api.looking import with_kinds
from floodmark.checkpoint.live_answers import SourcePlaces
from floodmark.connectors.behind import Lag
from floodmark.errors import CannotRead, MalformedFile, NoAnswer, WrongUse
from floodmark.secret_text import remember_all
from floodmark.storage.files import open_files

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.checkpoint.model import Checkpoint
    from floodmark.connectors.behind import GroupCommit
    from floodmark.connectors.lag import LagQuestion
    from floodmark.storage.files import Files

_LONGEST_CONFIG = 1 << 20


def lag(
    path: str,
    *,
    sources: bool = False,
    bootstrap_servers: str | None = None,
    kafka_config: str | Path | Mapping[str, str] | None = None,
    table: str | None = None,
    input: str | None = None,
    commit_to_group: str | None = None,
    timeout: float = 15.0,
    source_kinds: Mapping[str, str] | None = None,
    storage: Storage | None = None,
) -> Lag:
    """Return how far a stream is behind its sources, from the end of its last finished batch.

    Kafka is asked at `bootstrap_servers`, with the settings of `kafka_config` (a file or a
    mapping); `sources` asks every source in the notes of the last start. A source that does not
    answer within `timeout` seconds has an `error`; the others are still asked.

    `commit_to_group` writes the offsets into a Kafka consumer group without members, for other
    tools to see. They expire there: the broker keeps them for `offsets.retention.minutes`.
    """
    if not 0 < timeout <= MOST_SECONDS:
        raise WrongUse(f"--timeout {timeout:g}: no time for an answer", do="Give 1 or more.")
    places = SourcePlaces(sources, bootstrap_servers, table, None, input)
    files, checkpoint = _loaded(path, storage, source_kinds)
    config = client_settings(kafka_config)
    group = None
    if commit_to_group is not None:
        group = _commit(checkpoint, commit_to_group, bootstrap_servers, config, timeout)
    options = LagOptions(places, storage, config, timeout)
    found = ask_lag(files, checkpoint, options)
    return replace(found, path=public_url(str(path)), committed_group=group)


@dataclass(frozen=True)
class LagOptions:
    places: SourcePlaces
    storage: Storage | None
    kafka_config: Mapping[str, str]
    timeout: float


def ask_lag(files: Files, checkpoint: Checkpoint, options: LagOptions) -> Lag:
    """Return the lag of a loaded checkpoint with the entry of its last finished batch."""
    from floodmark.checkpoint.views.position import refuse_lost_offsets
    from floodmark.connectors.lag import done_batch, tell_lags

    refuse_lost_offsets(checkpoint)
    done = done_batch(checkpoint)
    place = public_url(checkpoint.path)
    if checkpoint.latest_batch is None:
        raise NoAnswer(
            f"{place}: no batch was planned yet, so its sources are not known",
            do="Wait until its query has planned one.",
        )
    if done is not None and done not in checkpoint.offsets:
        raise MalformedFile(
            f"{place}/offsets/{done} is not there or cannot be read",
            "This entry says where the last finished batch ended.",
            "`floodmark doctor CP` says what to do about it.",
        )
    asked_ms = time.time_ns() // 1_000_000
    questions = _questions(files, checkpoint, options, asked_ms)
    return Lag(place, done, checkpoint.in_flight_batch, asked_ms, tell_lags(questions))


def _commit(
    checkpoint: Checkpoint,
    group: str,
    bootstrap_servers: str | None,
    config: Mapping[str, str],
    timeout: float,
) -> GroupCommit:
    from floodmark.checkpoint.source_kinds import refuse_disputed
    from floodmark.connectors.kafka.admin import Admin
    from floodmark.connectors.kafka.consumer_group import (
        AdminGroups,
        check_name,
        commit_to_group,
        group_offsets,
    )
    from floodmark.connectors.lag import next_positions

    check_name(group)
    refuse_disputed(checkpoint, "--commit-to-group")
    if bootstrap_servers is None:
        # This writes to the brokers, so a note, which anybody may have made, must not choose them.
        raise WrongUse(
            "--commit-to-group needs the brokers that it writes to",
            do="Name them: --kafka HOST:PORT.",
        )
    groups = AdminGroups(Admin(bootstrap_servers, config, timeout))
    offsets = group_offsets(next_positions(checkpoint))
    now_ms = time.time_ns() // 1_000_000
    return commit_to_group(groups, group, offsets, checkpoint.query_id, now_ms)


def _loaded(
    path: str, storage: Storage | None, source_kinds: Mapping[str, str] | None
) -> tuple[Files, Checkpoint]:
    """Load the entries of the last finished batch and of the batch in flight."""
    from floodmark.connectors.lag import done_batch
    from floodmark.storage.load import load

    files = open_files(str(path), storage)
    checkpoint = load(files)
    done = done_batch(structured(checkpoint))
    if done is not None and done not in checkpoint.offsets:
        checkpoint = load(files, batches=[done])
    return files, with_kinds(checkpoint, source_kinds)


def _questions(
    files: Files, checkpoint: Checkpoint, options: LagOptions, now_ms: int
) -> list[LagQuestion]:
    from floodmark.checkpoint.start_note import source_options
    from floodmark.connectors.lag import LagQuestion, next_positions
    from floodmark.connectors.live import SourceToAsk
    from floodmark.storage.last_start import latest_note
    from floodmark.storage.untrusted_places import opener

    note = latest_note(files)
    places = options.places
    named = [files.root, places.table, places.input]
    opened = opener(named, options.storage, any_host=places.sources)
    planned = {source.id: source for source in checkpoint.sources}
    return [
        LagQuestion(
            SourceToAsk(position, source_options(note, position.id)),
            files,
            checkpoint,
            opened,
            places,
            now_ms,
            options.timeout,
            options.kafka_config,
            planned.get(position.id),
        )
        for position in next_positions(checkpoint)
    ]


def client_settings(given: str | Path | Mapping[str, str] | None) -> Mapping[str, str]:
    """Return checked login settings for a Kafka client, from a file or a mapping."""
    from floodmark.connectors.kafka.client_config import client_config, parse_client_config

    if given is None:
        return {}
    if isinstance(given, Mapping):
        config = client_config(given)
    else:
        try:
            with Path(given).open(encoding="utf-8") as file:
                text = file.read(_LONGEST_CONFIG)
        except (OSError, UnicodeDecodeError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            raise CannotRead(
                f"--kafka-config {given}: {words or error}",
                do="Name a file of KEY=VALUE lines, as Kafka's tools take with --command-config.",
            ) from None
        config = parse_client_config(text, f"--kafka-config {given}")
    remember_all(config)
    return config
