"""Describes the stateful operators of a checkpoint, the old one or the one drawn for new code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from floodmark.changes.carry.rehome import is_operator_metadata
from floodmark.changes.matching.aggregates import aggregations, with_columns
from floodmark.changes.matching.shapes import Aggregate, OperatorShape, StoreShape
from floodmark.checkpoint.layout import OPERATOR_METADATA, STATE, STATE_SCHEMA
from floodmark.checkpoint.metadata import with_partitions
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.operator_kinds import AGGREGATION, SESSION
from floodmark.checkpoint.plan.tree import Expression, PlanTree
from floodmark.checkpoint.plan.words import words
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.state.keys.grouping import grouping_of
from floodmark.state.shapes.operators import Reading
from floodmark.statestore.rewrite.operator_stores import StoreToRewrite, stores_of
from floodmark.storage.files import Files


@dataclass(frozen=True)
class Kept:
    """An operator in a checkpoint: its description, and how its stores are read."""

    operator: OperatorShape
    readings: tuple[Reading, ...]
    partitions: int
    stores: tuple[StoreToRewrite, ...] = ()

    @property
    def is_keyless(self) -> bool:
        return all(grouping_of(reading).is_keyless for reading in self.readings)


@dataclass(frozen=True)
class Drawn:
    """The checkpoint that Spark made for the new code, without any rows."""

    operators: tuple[Kept, ...]
    files: Mapping[str, bytes]
    """Files that describe the state: schemas and operator metadata."""
    spark: str = ""
    """The version of Spark that made the checkpoint, and that will continue with it."""

    def over(self, partitions: int | None) -> Drawn:
        """Return the same with another number of partitions; None: unchanged."""
        if partitions is None:
            return self
        operators = tuple(
            one if one.is_keyless else replace(one, partitions=partitions) for one in self.operators
        )
        files = {
            path: with_partitions(data, partitions) if is_operator_metadata(path) else data
            for path, data in self.files.items()
        }
        return replace(self, operators=operators, files=files)

    @property
    def zip_version(self) -> int:
        """Return the zip version for unique ids: 4.0 reads only v2, all others only v1."""
        return 2 if self.spark.startswith("4.0.") else 1


def kept_operators(
    files: Files,
    checkpoint: Checkpoint,
    batch: int,
    tree: PlanTree | None = None,
    initial: Sequence[Sequence[tuple[Any, ...]]] | None = None,
) -> tuple[Kept, ...]:
    """Return the operators of a checkpoint after a batch; `tree` is the code's plan."""
    bare = []
    for one in checkpoint.state_operators:
        stores = stores_of(files, checkpoint, one.operator, batch)
        readings = tuple(view.reading for store in stores for view in store.views)
        name = stores[0].views[0].operator_name
        operator = OperatorShape(one.operator, name, tuple(_store(reading) for reading in readings))
        bare.append(Kept(operator, readings, len(stores[0].partitions), stores))
    return _with_aggregates(tuple(bare), tree, initial)


def _store(reading: Reading) -> StoreShape:
    assert reading.schema is not None
    return StoreShape(reading.family or reading.folder, reading.schema.key, reading.schema.value)


def _with_aggregates(
    kept: tuple[Kept, ...],
    tree: PlanTree | None,
    initial: Sequence[Sequence[tuple[Any, ...]]] | None,
) -> tuple[Kept, ...]:
    found = aggregations(tree) if tree else ()
    mine = [one for one in kept if one.operator.kind in (AGGREGATION, SESSION)]
    if len(found) != len(mine):
        return kept
    known: dict[int, OperatorShape] = {}
    for at, (one, functions) in enumerate(zip(mine, found, strict=True)):
        named = with_columns(tuple(map(words, functions)), one.operator.stores[0].value)
        values = initial[at] if initial is not None and at < len(initial) else ()
        aggregates = _with_expressions(named, functions)
        if aggregates is not None and len(values) == len(aggregates):
            aggregates = tuple(
                replace(a, initial=tuple(v)) if len(v) == a.columns else a
                for a, v in zip(aggregates, values, strict=True)
            )
        known[one.operator.number] = replace(
            one.operator, aggregates=aggregates, functions=functions
        )
    return tuple(
        replace(one, operator=known.get(one.operator.number, one.operator)) for one in kept
    )


def _with_expressions(
    named: tuple[Aggregate, ...] | None, functions: tuple[Expression, ...]
) -> tuple[Aggregate, ...] | None:
    if named is None:
        return None
    return tuple(replace(a, expression=f) for a, f in zip(named, functions, strict=True))


def drawn_checkpoint(
    files: Files,
    checkpoint: Checkpoint,
    tree: PlanTree,
    initial: Sequence[Sequence[tuple[Any, ...]]],
    spark: str = "",
) -> Drawn:
    describing = {
        file.path: files.read(RelativePath(file.path))
        for file in checkpoint.files
        if file.path.startswith(f"{STATE}/")
        and not file.path.rsplit("/", 1)[-1].startswith(".")
        and {OPERATOR_METADATA, STATE_SCHEMA} & set(file.path.split("/"))
    }
    return Drawn(kept_operators(files, checkpoint, 0, tree, initial), describing, spark)
