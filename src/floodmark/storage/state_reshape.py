"""An operator's state made anew for other code: read, reshaped, put where Spark looks for it.

A store is read a piece at a time. Where keys stay as they are, so do their partitions, and
the pieces go straight through; where keys change, they wait on this machine's disk, sorted
by their new partition, and memory holds one partition.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.layout import FileInfo, state_files, store_folder
from floodmark.errors import StoppedMidway
from floodmark.state.encoding import encode
from floodmark.state.grouping import grouping_of
from floodmark.state.layout import Layout
from floodmark.state.merging import merged
from floodmark.state.operators import JOIN_STORES, Reading, Shape
from floodmark.state.records import Records
from floodmark.state.reshape import Recipe, Reshaping, recipe_from_json
from floodmark.state.schema import ColumnFamily
from floodmark.state.tally import Tally, tally
from floodmark.storage.files import Files
from floodmark.storage.state_change_file import write_change
from floodmark.storage.state_runs import Runs
from floodmark.storage.state_store import StoreAt
from floodmark.storage.state_view import StateView
from floodmark.storage.state_write import ROCKSDB, StoreFormat, WrittenStore, write_store
from floodmark.wire import to_wire

if TYPE_CHECKING:
    import pyarrow as pa

    Rows = Iterator[tuple[pa.Array, pa.Array]]

_AT_ONCE = 2


@dataclass(frozen=True)
class Part:
    """One kind of rows of the new state: a store, or one column family of it."""

    store: str
    """The folder below the partition's."""
    family: str | None
    shape: str
    key_json: str
    value_json: str
    encoding_json: str | None = None
    key_id: int = 0
    value_id: int = 0
    recipe: Recipe | None = None
    """None: it starts empty, or its rows are given."""
    source: str | None = None
    """What of the old operator is read, by the name that `floodmark state` has for it."""
    given: bool = False
    """A function of the user's makes the rows."""

    @property
    def name(self) -> str:
        return self.family or self.store

    @property
    def reading(self) -> Reading:
        schema = ColumnFamily(
            self.name,
            self.key_json,
            self.value_json,
            self.key_id,
            self.value_id,
            self.encoding_json,
        )
        return Reading(self.name, self.store, self.family, Shape(self.shape), schema)


@dataclass(frozen=True)
class Goal:
    """The state of one operator as the new code wants it."""

    operator: int
    from_operator: int | None
    """Whose state it is in the old checkpoint."""
    batch: int
    """The old batch after which the state is taken."""
    version: int
    """The version that it is in the new checkpoint."""
    partitions: int
    provider: str
    parts: tuple[Part, ...]
    codec: str = "lz4"
    row_checksums: bool = False
    avro: bool = False
    delimiter: str = ","
    unique_ids: tuple[tuple[str, ...], ...] | None = None
    """partition → the unique id of each store, where state has them."""
    in_flight: int | None = None
    """The old batch that was planned and not committed, where it has left a whole state."""
    zip_version: int = 1
    """What RocksDB's zips say of themselves: 2 for Spark 4.0 with unique ids."""

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.store for part in self.parts))

    def families(self, store: str) -> dict[str, int]:
        names = [part.family for part in self.parts if part.store == store and part.family]
        return {name: number for number, name in enumerate(names, 1)}

    def unique_id(self, partition: int, store: str) -> str | None:
        if self.unique_ids is None:
            return None
        mine = self.unique_ids[partition]
        return mine[JOIN_STORES.index(store)] if len(mine) > 1 else mine[0]


def goal_to_json(goal: Goal) -> dict[str, Any]:
    value: dict[str, Any] = to_wire(goal)
    return value


def goal_from_json(value: Mapping[str, Any]) -> Goal:
    parts = tuple(
        Part(**{**part, "recipe": recipe_from_json(part["recipe"]) if part["recipe"] else None})
        for part in value["parts"]
    )
    ids = value.get("unique_ids")
    unique = tuple(tuple(stores) for stores in ids) if ids is not None else None
    return Goal(**{**value, "parts": parts, "unique_ids": unique})


Given = Callable[[Part, int], "Rows"]
"""The rows that a user's function made, for one part and one partition."""


@dataclass(frozen=True)
class Written:
    """What was written, so that it can be read back."""

    goal: Goal
    stores: Mapping[tuple[int, str], WrittenStore]
    again: Mapping[tuple[int, str], WrittenStore]
    """What the batch in flight has left, as changes after the others."""


Views = Callable[[Part, int], "StateView | None"]
"""The old rows of a part after a batch."""


def write_state(
    goal: Goal,
    target: Files,
    views: Views,
    given: Given | None = None,
    partitions: Sequence[int] | None = None,
) -> Written:
    """Writes every store of every partition, or of some."""
    chosen = range(goal.partitions) if partitions is None else partitions
    places = [(partition, store) for partition in chosen for store in goal.stores]
    with contextlib.ExitStack() as stack:
        rows = _Sources(goal, views, given, stack, goal.batch)
        stores = _each(places, lambda place: _write_one(goal, target, place, rows))
        if goal.in_flight is None:
            return Written(goal, stores, {})
        later = _Sources(goal, views, given, stack, goal.in_flight)
        again = _each(places, lambda place: _write_again(goal, target, place, rows, later))
        return Written(goal, stores, again)


def goes_straight(goal: Goal, views: Views) -> bool:
    """True where every partition of the new state comes from the same one of the old."""
    for part in goal.parts:
        view = views(part, goal.batch)
        if part.given or (view is not None and part.recipe and not _stays(goal, part, view)):
            return False
    return True


def _stays(goal: Goal, part: Part, view: StateView) -> bool:
    assert part.recipe is not None
    return part.recipe.keeps_keys and len(view.partitions) == goal.partitions


def _each(
    places: list[tuple[int, str]], write: Callable[[tuple[int, str]], WrittenStore]
) -> dict[tuple[int, str], WrittenStore]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(places, pool.map(write, places), strict=True))


class _Sources:
    """The rows of every part after a batch, as the new stores keep them."""

    def __init__(
        self,
        goal: Goal,
        views: Views,
        given: Given | None,
        stack: contextlib.ExitStack,
        batch: int,
    ) -> None:
        self._parts = [
            (part.store, _source(goal, part, views(part, batch), given, stack))
            for part in goal.parts
        ]

    def rows(self, place: tuple[int, str]) -> Iterator[Records]:
        partition, store = place
        for mine, source in self._parts:
            if mine == store:
                yield from source(partition)


def _write_one(
    goal: Goal, target: Files, place: tuple[int, str], sources: _Sources
) -> WrittenStore:
    partition, store = place
    return write_store(
        target,
        store_folder(goal.operator, partition, store),
        goal.version,
        sources.rows(place),
        _style(goal, store),
        goal.unique_id(partition, store),
    )


def _write_again(
    goal: Goal, target: Files, place: tuple[int, str], before: _Sources, after: _Sources
) -> WrittenStore:
    partition, store = place
    folder = store_folder(goal.operator, partition, store)
    rows = before.rows(place), after.rows(place)
    return write_change(target, folder, goal.version + 1, *rows, _style(goal, store))


def _style(goal: Goal, store: str) -> StoreFormat:
    families = goal.families(store)
    internal = frozenset(name for name in families if name.startswith("$"))
    return StoreFormat(
        goal.provider, goal.codec, goal.row_checksums, families, internal, goal.zip_version
    )


def _layout(goal: Goal, part: Part) -> Layout:
    schema = part.reading.schema
    assert schema is not None
    rocksdb = goal.provider == ROCKSDB
    return Layout(
        schema.key,
        schema.value,
        rocksdb,
        schema.encoding,
        goal.families(part.store)[part.family] if part.family is not None and rocksdb else None,
        part.reading.shape in (Shape.LIST, Shape.VALUES),
        goal.delimiter.encode(),
        goal.row_checksums and rocksdb,
        goal.avro and part.family is not None,
        {part.value_id: schema.value},
    )


def _source(
    goal: Goal,
    part: Part,
    view: StateView | None,
    given: Given | None,
    stack: contextlib.ExitStack,
) -> Callable[[int], Iterator[Records]]:
    """A partition's rows, as the new store keeps them."""
    layout = _layout(goal, part)
    if part.given:
        assert given is not None
        rows = given
        return lambda partition: _encoded(part, layout, rows(part, partition))
    if part.recipe is None or view is None:
        return lambda partition: iter(())
    schema = part.reading.schema
    assert schema is not None
    where = f"operator {goal.operator}, {part.name}"
    reshaping = Reshaping(part.recipe, schema.key, schema.value, where)
    if _stays(goal, part, view):
        return lambda partition: _encoded(part, layout, _reshaped(view, reshaping, partition))
    place = stack.enter_context(tempfile.TemporaryDirectory(prefix="floodmark-runs-"))
    runs = _sort_out(goal, part, view, reshaping, Path(place, "runs"))
    if part.recipe.merge is None:
        return runs.rows
    return lambda partition: _merged(part, layout, runs.rows(partition))


def _encoded(part: Part, layout: Layout, rows: Rows) -> Iterator[Records]:
    for keys, values in rows:
        if len(keys):
            yield encode(layout, keys, values, part.key_id, part.value_id)


def _reshaped(view: StateView, reshaping: Reshaping, partition: int) -> Rows:
    for keys, values in stored_rows(view, partition):
        yield reshaping.rows(keys, values)


def stored_rows(view: StateView, partition: int) -> Rows:
    """The rows of a partition as the store keeps them, not as a person sees them."""
    with view.at.open(partition) as opened:
        layout = view.layout(opened)
        for records in opened.records():
            keys, values = layout.decode(records)
            if len(keys):
                yield keys, values


def _sort_out(goal: Goal, part: Part, view: StateView, reshaping: Reshaping, path: Path) -> Runs:
    layout, runs = _layout(goal, part), Runs(path, goal.partitions)
    for partition in view.partitions:
        for keys, values in _reshaped(view, reshaping, partition):
            records = encode(layout, keys, values, part.key_id, part.value_id)
            runs.add(records, partitions_of(part.reading, keys, goal.partitions))
    runs.close()
    return runs


def partitions_of(reading: Reading, keys: pa.Array, partitions: int) -> Any:
    """The partition in which Spark will look for each key."""
    import numpy as np

    grouping = grouping_of(reading)
    if grouping.is_keyless or partitions == 1:
        return np.zeros(len(keys), np.int64)
    return grouping.hashes(keys).view("i4").astype(np.int64) % partitions


def _merged(part: Part, layout: Layout, rows: Iterator[Records]) -> Iterator[Records]:
    """Keys that became one are in one partition, which is looked at as a whole."""
    import pyarrow as pa

    found = [layout.decode(records) for records in rows]
    schema, recipe = part.reading.schema, part.recipe
    if not found or schema is None or recipe is None or recipe.merge is None:
        return
    keys, values = (pa.concat_arrays([pair[at] for pair in found]) for at in (0, 1))
    pair = merged(keys, values, schema.key, schema.value, recipe.merge)
    yield from _encoded(part, layout, iter([pair]))


def check_state(written: Written, target: Files) -> None:
    """Reads back all that was written; raises where it is not the same rows."""
    goal = written.goal
    asked = [(goal.version, place, one.files, one.tally) for place, one in written.stores.items()]
    for place, one in written.again.items():
        files = (*written.stores[place].files, *one.files)
        asked.append((goal.version + 1, place, files, one.tally))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(lambda item: _check_one(goal, target, *item), asked):
            pass


def _check_one(
    goal: Goal,
    target: Files,
    version: int,
    place: tuple[int, str],
    files: tuple[FileInfo, ...],
    wanted: Tally,
) -> None:
    partition, store = place
    found = Tally()
    with _store_at(goal, store, partition, version, files, target).open(partition) as opened:
        for records in opened.records():
            found += tally(records)
    if found != wanted:
        raise StoppedMidway(
            f"{store_folder(goal.operator, partition, store)} reads back as {found.rows} rows "
            f"({found.checksum}), not as {wanted.rows} ({wanted.checksum})",
            "Storage did not keep what was written, or something else writes there.",
            "Repeat the command: all of it is written anew.",
        )


def _store_at(
    goal: Goal,
    store: str,
    partition: int,
    version: int,
    files: tuple[FileInfo, ...],
    target: Files,
) -> StoreAt:
    listed = tuple(state_files(files))
    unique = goal.unique_id(partition, store)
    return StoreAt(
        target,
        goal.operator,
        store,
        version,
        goal.provider,
        {partition: listed},
        {partition: unique} if unique else {},
        frozenset(),
        goal.row_checksums,
        goal.delimiter.encode(),
    )
