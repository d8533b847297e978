"""Prints declarative pipelines: pipeline → table → flow → its checkpoints."""

from __future__ import annotations

from floodmark.api.pipelines import PipelineFlows
from floodmark.checkpoint.places.flow import Flow, FlowStatus, flow_place
from floodmark.checkpoint.views.inspection import ScanEntry
from floodmark.cli.text import count, size, style, table
from floodmark.visible import one_line

_MEANING = {
    FlowStatus.CURRENT: "the pipeline goes on from it",
    FlowStatus.SUPERSEDED: "a full refresh or a later checkpoint has taken its place",
    FlowStatus.EMPTY: "the flow begins with its first record",
}
_COLOUR = {FlowStatus.CURRENT: "green", FlowStatus.SUPERSEDED: "dim", FlowStatus.EMPTY: "yellow"}


def heading(flow: Flow) -> str:
    words = f"{flow.status.value}: {_MEANING[flow.status]}"
    return (
        f"pipeline {one_line(flow.pipeline)} → table {one_line(flow.table)} → flow "
        f"{one_line(flow.flow)}   {style(words, _COLOUR[flow.status])}\n"
    )


def flows(found: PipelineFlows) -> str:
    by_flow: dict[tuple[str, str], list[ScanEntry]] = {}
    for entry in found.flows:
        assert entry.flow is not None
        by_flow.setdefault((entry.flow.table, entry.flow.flow), []).append(entry)
    parts = [f"{style('pipeline ' + one_line(found.pipeline), 'bold')}   {one_line(found.storage)}"]
    for (of_table, flow), entries in by_flow.items():
        rows = [_row(entry) for entry in entries]
        parts.append(f"{one_line(of_table)} → flow {one_line(flow)}\n{table(rows)}")
    if not by_flow:
        parts.append("No flow has a checkpoint here: none that streams has run yet.")
        return "\n\n".join(parts)
    empty = [one for one in found.flows if one.flow and one.flow.status is FlowStatus.EMPTY]
    begin = f"{len(empty) or 'none'} of which will start from nothing"
    return "\n\n".join([*parts, f"{count(len(by_flow), 'flow')}, {begin}."])


def _row(entry: ScanEntry) -> tuple[str, ...]:
    assert entry.flow is not None
    place, status = flow_place(entry.path), entry.flow.status
    committed = "no batch" if entry.committed_batch is None else f"batch {entry.committed_batch}"
    said = entry.findings[0] if entry.findings else _MEANING[status]
    number = str(place.number) if place else entry.path
    return (number, status.value, committed, size(entry.bytes), said)
