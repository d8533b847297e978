"""Finds which flow of a declarative pipeline a checkpoint belongs to, and lists flows."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from floodmark.api.arguments import Storage
from floodmark.checkpoint.layout import COMMITS, FLOW_CHECKPOINTS, OFFSETS
from floodmark.checkpoint.model import Kind
from floodmark.checkpoint.places.flow import (
    Flow,
    FlowStatus,
    flow_at,
    flow_place,
    next_folder,
)
from floodmark.checkpoint.text import shorten
from floodmark.checkpoint.views.inspection import ScanEntry
from floodmark.errors import MalformedFile, NotACheckpoint
from floodmark.screen import ShownByFields
from floodmark.storage.files import Files, local_path, open_files

if TYPE_CHECKING:
    from floodmark.changes.apply import Carrying, Change
    from floodmark.changes.plan import Plan


@dataclass(frozen=True, repr=False)
class PipelineFlows(ShownByFields):
    """A declarative pipeline's flows, with all of their checkpoints."""

    pipeline: str
    """The pipeline's name in the specification, else the name of the storage's folder."""
    storage: str
    """The storage root that holds the checkpoints."""
    flows: tuple[ScanEntry, ...]
    """Every checkpoint of every flow."""


def flow_of(path: str, storage: Storage | None = None, pipeline: str | None = None) -> Flow | None:
    """Return the flow with this checkpoint; None for every other checkpoint."""
    place = flow_place(_whole(path))
    if place is None:
        return None
    beside = open_files(place.folder, storage).level().folders
    level = open_files(str(path), storage).level()
    return flow_at(place, beside, bool({OFFSETS, COMMITS} & set(level.folders)), pipeline)


def next_checkpoint(path: str, storage: Storage | None = None) -> str | None:
    """Return the existing folder with the next number, from which the pipeline will continue."""
    place = flow_place(_whole(path))
    if place is None:
        return None
    return next_folder(place, open_files(place.folder, storage).level().folders)


def applied_beside(plan: Plan, files: Files, how: Carrying) -> Change:
    """Execute a change in place; for a flow's checkpoint, make it in the next number."""
    from floodmark.changes.apply import apply_if_asked, begin_new_place
    from floodmark.changes.planners.next_number import can_be_beside, plan_beside

    new = next_checkpoint(plan.target, how.storage) if can_be_beside(plan) else None
    if new is None or not plan.in_place:
        return apply_if_asked(plan, how)
    return begin_new_place(plan_beside(files, files.list().files, plan, new), how)


def storage_of(path: str) -> tuple[str, str | None]:
    """Return (storage root, pipeline name) of a specification; else the path itself."""
    from floodmark.storage.pipeline_spec import is_pipeline_spec, read_pipeline_spec

    if not is_pipeline_spec(str(path)):
        return str(path), None
    spec = read_pipeline_spec(str(path))
    local = local_path(spec.storage)
    if local is not None and not os.path.isabs(local):  # noqa: PTH117
        raise MalformedFile(
            f"{path}: the storage {shorten(spec.storage)} is relative",
            "It does not say relative to which folder, and Spark's runner accepts only absolute "
            "paths.",
            f"Write it with its scheme: storage: file://{os.path.abspath(local)}",  # noqa: PTH100
        )
    return spec.storage, spec.name


def has_flows(path: str, storage: Storage | None = None) -> bool:
    """Whether this is the storage of a declarative pipeline."""
    return FLOW_CHECKPOINTS in open_files(str(path), storage).level().folders


def flows(path: str, storage: Storage | None = None) -> PipelineFlows:
    """List the tables, flows and checkpoints of a storage root or a `spark-pipeline.yml`."""
    from floodmark.api.reading import scan

    root, name = storage_of(path)
    files = open_files(root, storage)
    if FLOW_CHECKPOINTS not in files.level().folders:
        raise NotACheckpoint(
            f"{root} holds no checkpoints of a pipeline",
            f"It has no folder {FLOW_CHECKPOINTS}: no streaming flow has run yet.",
            "Give the storage that the pipeline's specification names.",
        )
    found = [one for one in scan(str(path), storage) if one.flow is not None]
    return PipelineFlows(
        name or _whole(root).rpartition("/")[2], root, tuple(sorted(found, key=_in_order))
    )


def with_flow(entry: ScanEntry, storage: Storage | None, name: str | None) -> ScanEntry:
    found = flow_of(entry.path, storage, name)
    if found is None:
        return entry
    if found.status is FlowStatus.EMPTY:  # this is no fault: the flow begins in it
        entry = replace(entry, kind=Kind.STRUCTURED_STREAMING, findings=())
    return replace(entry, flow=found)


def _in_order(entry: ScanEntry) -> tuple[str, str, int]:
    place = flow_place(_whole(entry.path))
    assert place is not None
    return place.table, place.flow, place.number


def _whole(path: str) -> str:
    local = local_path(str(path))
    return str(path).rstrip("/") if local is None else os.path.abspath(local)  # noqa: PTH100
