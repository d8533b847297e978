"""Compares the flows of a declarative pipeline with their checkpoints, before its runner starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from floodmark.checkpoint.outline import Outline
from floodmark.checkpoint.places.flow import FlowPlace, flow_place
from floodmark.engine.code.check import compare
from floodmark.engine.code.outline import described
from floodmark.engine.code.query import read_query
from floodmark.engine.pipelines.declarative import FlowCode, defined, flow_codes
from floodmark.engine.pipelines.definitions import Definitions, last_part
from floodmark.engine.spark.jvm import end_jvm, short_lived_jvm
from floodmark.engine.spark.session import running_session
from floodmark.engine.start.changed_code import code_findings
from floodmark.engine.start.notes import add_note, note_of
from floodmark.errors import FloodmarkError
from floodmark.redaction import Redaction
from floodmark.rules.finding import Finding
from floodmark.storage.files import WritableFiles, local_path
from floodmark.storage.load import load


@dataclass(frozen=True)
class FlowNote:
    """The note that a start of this flow's code would have written."""

    code: str
    """The specification and the flow, as arguments of `check`."""
    table: str
    flow: str
    checkpoint: str | None
    next_batch: int
    outline: Outline
    redaction: Redaction


@dataclass(frozen=True)
class FlowLooks:
    findings: tuple[Finding, ...]
    orphans: tuple[str, ...]
    """Checkpoints of flows that the definitions do not have."""
    unread: tuple[str, ...]
    """Sentences that say what could not be compared."""
    notes: tuple[FlowNote, ...]


def look_at_flows(
    spec: str,
    checkpoints: Mapping[str, WritableFiles],
    conf: Mapping[str, str],
    log: Path | None,
    stdout_to_stderr: bool,
) -> FlowLooks:
    """Compare each flow with its current folder in `checkpoints`; start and write nothing."""
    ours = running_session() is None
    try:
        with short_lived_jvm(), defined(spec, conf, log, stdout_to_stderr) as (spark, found):
            return _looked(spark, found, spec, checkpoints)
    finally:
        if ours:
            end_jvm()  # the runner starts its own JVM, on the same catalog


def _looked(
    spark: Any, found: Definitions, spec: str, checkpoints: Mapping[str, WritableFiles]
) -> FlowLooks:
    placed = {path: flow_place(local_path(path) or path) for path in checkpoints}
    looks = _Looks()
    known = set()
    for code in flow_codes(spark, found):
        path = next((one for one, at in placed.items() if _is_at(at, code.name, code.table)), None)
        known.add(path)
        files = checkpoints[path] if path is not None else None
        looks.look(code, path, files, found.fingerprint, spec)
    for named in found.not_judged:
        flow, table = map(last_part, named)
        path = next((one for one, at in placed.items() if _is_at(at, flow, table)), None)
        known.add(path)
        if path is not None:
            looks.unread.append(f"flow {flow}: AUTO CDC keeps its state in its table")
    orphans = tuple(one for one in placed if one not in known)
    return FlowLooks(tuple(looks.findings), orphans, tuple(looks.unread), tuple(looks.notes))


def leave_notes(notes: tuple[FlowNote, ...], checkpoints: Mapping[str, WritableFiles]) -> None:
    """Note each flow's code in the folder that the runner has used for it."""
    for path, files in checkpoints.items():
        place = flow_place(local_path(path) or path)
        for one in notes:
            if place is not None and (one.flow, one.table) == (place.flow, _table(place)):
                # A full refresh begins in another folder, with batch 0.
                begun = one.next_batch if path == one.checkpoint else 0
                add_note(files, note_of(one.outline, one.code, begun, one.redaction))


class _Looks:
    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.unread: list[str] = []
        self.notes: list[FlowNote] = []

    def look(
        self,
        code: FlowCode,
        path: str | None,
        files: WritableFiles | None,
        fingerprint: str,
        spec: str,
    ) -> None:
        from py4j.protocol import Py4JError

        try:
            writer = code.writer()
            # After a full refresh the folder is empty, and the flow begins in it.
            begins = files is None or not files.level().folders
            checkpoint = load(files) if files is not None and not begins else None
            committed = checkpoint.committed_batch if checkpoint is not None else None
            if files is not None and checkpoint is not None and checkpoint.latest_batch is not None:
                comparison = compare(writer, files, checkpoint, fingerprint)
                comparison = replace(comparison, application=(f"{spec}:{code.name}",))
                self.findings += code_findings(comparison, str(path))
            redaction = Redaction.fresh()
            outline = described(writer._spark, read_query(writer), redaction=redaction)
        except (FloodmarkError, Py4JError) as error:
            if path is not None:  # a flow without checkpoint does not stream, or begins anew
                self.unread.append(f"flow {code.name}: {str(error).splitlines()[0]}")
            return
        begun = 0 if committed is None else committed + 1
        name = f"{spec}:{code.name}"
        self.notes.append(FlowNote(name, code.table, code.name, path, begun, outline, redaction))


def _is_at(place: FlowPlace | None, flow: str, table: str) -> bool:
    return place is not None and (flow, table) == (place.flow, _table(place))


def _table(place: FlowPlace) -> str:
    return place.table.rpartition(".")[2]
