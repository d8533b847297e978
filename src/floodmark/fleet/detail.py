"""Collects all that one checkpoint's page shows, from what was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.dstreams.restart import restart_words
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.checkpoint.restart import restart
from floodmark.checkpoint.state_chain import missing_state
from floodmark.connectors.registry import about
from floodmark.connectors.source import SourceOffset
from floodmark.fleet.batch_bars import BatchBar, Mark, batch_bars, marks
from floodmark.fleet.card import bounded
from floodmark.fleet.dstreams_view import DStreamsView, dstreams_steps, dstreams_view
from floodmark.fleet.next_steps import NextStep, dstreams_next_steps, next_steps
from floodmark.fleet.progress_lines import ProgressLine, by_batch
from floodmark.fleet.protocol import ProtocolStep, protocol_steps
from floodmark.fleet.state_map import HeatMap, RestartLoad, heat_maps, restart_load
from floodmark.redaction import noted_conf, noted_options
from floodmark.secret_text import redacted

_MOST_PARTS = 512
_MOST_FINDINGS = 200
_MOST_SOURCES = 50
_MOST_SETTINGS = 300
_MOST_MARKS = 200
_LONGEST_VALUE = 500


@dataclass(frozen=True)
class PagePart:
    part: str
    position: str
    started: str | None
    """The position at which the newest batch began to read the part."""


@dataclass(frozen=True)
class PageSource:
    id: str
    kind: str
    shown_as: str
    reached: str
    parts: tuple[PagePart, ...]
    left_out: int
    options: Mapping[str, str]
    """The options in the note of the last start, without secrets."""


@dataclass(frozen=True)
class PageFinding:
    code: str
    rule: str
    severity: str
    path: str
    what: str
    why: str
    do: str
    repairable: bool


@dataclass(frozen=True)
class StartSummary:
    """The last start's versions and settings, from its note."""

    pipeline: str
    spark_version: str
    sink: str
    output_mode: str
    trigger: str
    started_ms: int | None


@dataclass(frozen=True)
class CheckpointDetail:
    id: str
    kind: str
    query_id: str | None
    restart: str
    restart_action: str | None
    latest_batch: int | None
    committed_batch: int | None
    in_flight_batch: int | None
    watermark_ms: int | None
    protocol: tuple[ProtocolStep, ...]
    batches: tuple[BatchBar, ...]
    marks: tuple[Mark, ...]
    sources: tuple[PageSource, ...]
    conf: Mapping[str, str]
    heat_maps: tuple[HeatMap, ...]
    restart_load: RestartLoad
    findings: tuple[PageFinding, ...]
    findings_left_out: int
    next_steps: tuple[NextStep, ...]
    progress: tuple[ProgressLine, ...]
    last_start: StartSummary | None
    lacks: Mapping[str, str]
    """The data that each view needs but does not have."""
    dstreams: DStreamsView | None = None
    """The view of a DStreams folder, which has no log of batches."""


def detail(
    id_: str,
    evidence: Evidence,
    path: str,
    findings: Sequence[PageFinding],
    notes: Sequence[Mapping[str, Any]],
    changes: Iterable[Mark],
    progress: Sequence[ProgressLine],
    now_ms: int,
) -> CheckpointDetail:
    """Collect the page's content; `notes` of starts and `progress` are oldest first."""
    checkpoint = evidence.checkpoint
    inside = checkpoint.dstreams
    structured = checkpoint.kind is Kind.STRUCTURED_STREAMING
    verdict = restart(checkpoint, missing_state(checkpoint)) if structured else None
    bars = batch_bars(checkpoint, by_batch(progress))
    note = notes[-1] if notes else None
    errors = sum(one.severity == "error" for one in findings)
    repairable = sum(one.repairable for one in findings)
    return CheckpointDetail(
        id_,
        checkpoint.kind.value,
        None if checkpoint.query_id is None else bounded(checkpoint.query_id),
        verdict.words if verdict else restart_words(inside, now_ms) if inside else "",
        verdict.action.value if verdict else None,
        checkpoint.latest_batch,
        checkpoint.committed_batch,
        checkpoint.in_flight_batch,
        checkpoint.watermark_ms or None,
        dstreams_steps(inside) if inside else protocol_steps(checkpoint),
        bars,
        marks(checkpoint, notes, changes, progress)[-_MOST_MARKS:],
        _sources(checkpoint, note),
        {
            bounded(key): bounded(value, _LONGEST_VALUE)
            for key, value in list(noted_conf(inside.conf if inside else checkpoint.conf).items())[
                :_MOST_SETTINGS
            ]
        },
        heat_maps(checkpoint),
        restart_load(checkpoint, evidence.snapshots),
        tuple(findings[:_MOST_FINDINGS]),
        max(len(findings) - _MOST_FINDINGS, 0),
        next_steps(checkpoint, path, repairable, errors)
        if structured
        else dstreams_next_steps(path, errors),
        tuple(progress),
        _start(note),
        {} if inside else _lacks(checkpoint, bars, notes, progress),
        dstreams_view(checkpoint),
    )


def _sources(checkpoint: Checkpoint, note: Mapping[str, Any] | None) -> tuple[PageSource, ...]:
    latest = checkpoint.latest_batch
    earlier = [batch for batch in checkpoint.offsets if latest is not None and batch < latest]
    before = {one.id: one for one in checkpoint.sources_of(max(earlier))} if earlier else {}
    shown = checkpoint.sources[:_MOST_SOURCES]
    return tuple(_source(source, before.get(source.id), note) for source in shown)


def _source(
    source: SourceOffset, before: SourceOffset | None, note: Mapping[str, Any] | None
) -> PageSource:
    kind = about(source)
    parts = _parts(kind, source.offset)
    began = _parts(kind, before.offset) if before and before.kind == source.kind else {}
    shown = list(parts.items())[:_MOST_PARTS]
    reached = "nothing yet" if source.offset is None else kind.reached(source.offset)
    return PageSource(
        bounded(source.id),
        source.kind,
        kind.shown_as or source.kind,
        bounded(redacted(reached)),
        tuple(PagePart(name, at, began.get(name)) for name, at in shown),
        len(parts) - len(shown),
        _options(note, source.id),
    )


def _parts(kind: Any, offset: Any) -> dict[str, str]:
    found = kind.parts(offset) if offset is not None else None
    if not found:
        return {}
    return {
        bounded("/".join(map(str, name))): bounded(redacted(str(at)))
        for name, at in list(found.items())[: 4 * _MOST_PARTS]
    }


def _options(note: Mapping[str, Any] | None, source: str) -> dict[str, str]:
    listed = note.get("sources") if note else None
    if not isinstance(listed, list) or not source.isdecimal() or int(source[:6]) >= len(listed):
        return {}
    options = listed[int(source[:6])]
    options = options.get("options") if isinstance(options, dict) else None
    if not isinstance(options, dict):
        return {}
    texts = {bounded(str(key)): bounded(str(value)) for key, value in options.items()}
    return noted_options(texts)


def _start(note: Mapping[str, Any] | None) -> StartSummary | None:
    if note is None:
        return None
    at = note.get("started_ms")

    def text(name: str) -> str:
        return bounded(redacted(str(note.get(name) or "")))

    return StartSummary(
        text("pipeline"),
        text("spark_version"),
        text("sink"),
        text("output_mode"),
        text("trigger"),
        at if type(at) is int and at > 0 else None,
    )


def _lacks(
    checkpoint: Checkpoint,
    bars: Sequence[BatchBar],
    notes: Sequence[Mapping[str, Any]],
    progress: Sequence[ProgressLine],
) -> dict[str, str]:
    found = {}
    if not progress:
        found["progress"] = (
            "There are no progress lines here. `floodmark run` and floodmark.start() keep them in "
            "_floodmark/progress.jsonl; without them the phases of a batch, its rows and its late "
            "rows are not known."
        )
    if not notes:
        found["marks"] = (
            "No start of this query was noted, so restarts and changes of code do not show. "
            "`floodmark run` notes them."
        )
    if bars and all(bar.committed_ms is None for bar in bars):
        found["batches"] = (
            "The files have the times of a copy, so how long a batch took is not known."
        )
    if not checkpoint.state_operators:
        found["state"] = "This stream keeps no state."
    if not checkpoint.watermark_ms:
        found["watermark"] = "This stream has no watermark."
    if not checkpoint.complete:
        found["files"] = "The checkpoint is too large to be listed to its end from this storage."
    return found
