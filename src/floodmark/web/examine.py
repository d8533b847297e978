"""Examines one checkpoint as a whole: sizes, kinds of sources, and the doctor's quick findings."""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.checkpoint.dstreams.batches import input_of
from floodmark.checkpoint.layout import STARTS, names_in
from floodmark.checkpoint.model import Checkpoint, Kind, StateOperator
from floodmark.checkpoint.places.flow import flow_place
from floodmark.checkpoint.restart import Action, restart
from floodmark.connectors.source import SourceOffset
from floodmark.diagnosis.gather import glance
from floodmark.fleet.batch_bars import was_copied
from floodmark.fleet.card import CardDStreams, FindingCounts, bounded
from floodmark.rules.finding import Severity
from floodmark.rules.registry import examine as examine_evidence
from floodmark.secret_text import redacted
from floodmark.storage.files import Files

_STRUCTURED = Kind.STRUCTURED_STREAMING.value


@dataclass(frozen=True)
class Examined:
    kind: str
    query_id: str | None
    sources: tuple[str, ...]
    state_bytes: int | None
    bytes: int
    files: int
    findings: FindingCounts
    batch_times: tuple[int, ...] | None
    """The batches' own times, for a copy: a copy's files have wrong times."""
    committed: int | None = None
    operators: tuple[StateOperator, ...] = ()
    dstreams: CardDStreams | None = None
    starts: int | None = None
    """The number of starts that floodmark has noted; None: not all files were listed."""


def examine(files: Files) -> Examined:
    if flow_place(files.root) is not None:
        level = files.level()
        if not level.folders and not level.files:  # a full refresh: the first record fills it
            return Examined(_STRUCTURED, None, (), None, 0, 0, FindingCounts(), None)
    evidence = glance(files)
    checkpoint = evidence.checkpoint
    inside = checkpoint.dstreams
    operators = checkpoint.state_operators
    structured = checkpoint.kind is Kind.STRUCTURED_STREAMING
    times = None
    if structured and was_copied(checkpoint):
        done = set(checkpoint.commit_ids)
        times = tuple(
            entry.metadata.batch_timestamp_ms
            for batch, entry in sorted(checkpoint.offsets.items())
            if entry.metadata and batch in done
        )
    if checkpoint.complete:
        found = examine_evidence(evidence)
        counts = {level: sum(one.severity is level for one in found) for level in Severity}
        worst = bounded(redacted(f"{found[0].code} {found[0].what}")) if found else None
        findings = FindingCounts(
            counts[Severity.ERROR], counts[Severity.WARNING], counts[Severity.ADVICE], worst
        )
    else:  # most of its state was not listed, so rules would miss it
        verdict = restart(checkpoint) if structured else None
        fails = verdict is not None and verdict.action in (Action.FAIL, Action.UNKNOWN)
        findings = FindingCounts(int(fails), first=verdict.words if verdict and fails else None)
    return Examined(
        checkpoint.kind.value,
        None if checkpoint.query_id is None else bounded(checkpoint.query_id),
        tuple(dict.fromkeys(source.kind for source in _inputs(checkpoint))),
        _state_bytes(checkpoint),
        checkpoint.bytes,
        len(checkpoint.files),
        findings,
        times,
        checkpoint.committed_batch,
        operators,
        CardDStreams(inside.batch_ms, _count(inside.pending_times)) if inside else None,
        len(names_in(checkpoint.files, STARTS)) if checkpoint.complete else None,
    )


def _inputs(checkpoint: Checkpoint) -> tuple[SourceOffset, ...]:
    inside = checkpoint.dstreams
    if inside is None:
        return checkpoint.sources
    return input_of(inside, inside.checkpoint_time_ms or 0)


def _state_bytes(checkpoint: Checkpoint) -> int | None:
    """Return the bytes of the state; None: the query keeps no state."""
    if checkpoint.dstreams is not None:
        rdds = checkpoint.dstreams.rdds
        return sum(rdd.bytes for rdd in rdds) if rdds else None
    operators = checkpoint.state_operators
    return sum(one.bytes for one in operators) if operators else None


def _count(times: tuple[int, ...] | None) -> int | None:
    return None if times is None else len(times)
