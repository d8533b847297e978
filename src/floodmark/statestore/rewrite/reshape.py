"""An operator's state recreated for other code: read, reshaped, put where Spark looks for it.

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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.checkpoint.layout import FileInfo, state_files, store_folder
from floodmark.errors import StoppedMidway
from floodmark.state.files.records import Records
from floodmark.state.rows.encoding import encode
from floodmark.state.rows.layout import Layout
from floodmark.state.shapes.merging import merged
from floodmark.state.shapes.tally import Tally, tally
from floodmark.statestore.change_file import write_change
from floodmark.statestore.rewrite.goal import Part, ReshapeTarget, layout_of
from floodmark.statestore.rewrite.moving import Moved, moves, reshaped_rows, sorted_out
from floodmark.statestore.store import StoreAt
from floodmark.statestore.view import StateView
from floodmark.statestore.write import StoreFormat, WrittenStore, write_store
from floodmark.storage.files import Files, WritableFiles

if TYPE_CHECKING:
    from floodmark.statestore.rewrite.moving import Rows

_AT_ONCE = 2


Given = Callable[[Part, int], "Rows"]
"""The rows that a user's function made, for one part and one partition."""


@dataclass(frozen=True)
class Written:
    """What was written, so that it can be read back."""

    goal: ReshapeTarget
    stores: Mapping[tuple[int, str], WrittenStore]
    again: Mapping[tuple[int, str], WrittenStore]
    """What the batch in flight has left, as changes after the others."""


Views = Callable[[Part, int], "StateView | None"]
"""The old rows of a part after a batch."""


def write_state(
    goal: ReshapeTarget,
    target: WritableFiles,
    views: Views,
    given: Given | None = None,
    partitions: Sequence[int] | None = None,
    moved: Moved | None = None,
) -> Written:
    """Writes every store of every partition, or of some.

    `moved` gives the rows that come from other partitions; else they are sorted out here.
    """
    chosen = range(goal.partitions) if partitions is None else partitions
    places = [(partition, store) for partition in chosen for store in goal.stores]
    with contextlib.ExitStack() as stack:
        moved = moved or _moved_here(goal, views, stack)
        rows = _Sources(goal, views, given, moved, goal.batch)
        stores = _each(places, lambda place: _write_one(goal, target, place, rows))
        if goal.in_flight is None:
            return Written(goal, stores, {})
        later = _Sources(goal, views, given, moved, goal.in_flight)
        again = _each(places, lambda place: _write_again(goal, target, place, rows, later))
        return Written(goal, stores, again)


def _each(
    places: list[tuple[int, str]], write: Callable[[tuple[int, str]], WrittenStore]
) -> dict[tuple[int, str], WrittenStore]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(places, pool.map(write, places), strict=True))


class _Sources:
    """The rows of every part after a batch, as the new stores keep them."""

    def __init__(
        self,
        goal: ReshapeTarget,
        views: Views,
        given: Given | None,
        moved: Moved,
        batch: int,
    ) -> None:
        self._parts = [
            (
                part.store,
                _source(goal, part, views(part, batch), given, partial(moved, part, batch)),
            )
            for part in goal.parts
        ]

    def rows(self, place: tuple[int, str]) -> Iterator[Records]:
        partition, store = place
        for mine, source in self._parts:
            if mine == store:
                yield from source(partition)


def _write_one(
    goal: ReshapeTarget, target: WritableFiles, place: tuple[int, str], sources: _Sources
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
    goal: ReshapeTarget,
    target: WritableFiles,
    place: tuple[int, str],
    before: _Sources,
    after: _Sources,
) -> WrittenStore:
    partition, store = place
    folder = store_folder(goal.operator, partition, store)
    rows = before.rows(place), after.rows(place)
    return write_change(target, folder, goal.version + 1, *rows, _style(goal, store))


def _style(goal: ReshapeTarget, store: str) -> StoreFormat:
    families = goal.families(store)
    internal = frozenset(name for name in families if name.startswith("$"))
    return StoreFormat(
        goal.provider, goal.codec, goal.row_checksums, families, internal, goal.zip_version
    )


def _source(
    goal: ReshapeTarget,
    part: Part,
    view: StateView | None,
    given: Given | None,
    moved: Callable[[], Callable[[int], Iterator[Records]]],
) -> Callable[[int], Iterator[Records]]:
    """A partition's rows, as the new store keeps them."""
    layout = layout_of(goal, part)
    if part.given:
        assert given is not None
        rows = given
        return lambda partition: _encoded(part, layout, rows(part, partition))
    if part.recipe is None or view is None:
        return lambda partition: iter(())
    if not moves(goal, part, view):
        return lambda partition: _encoded(part, layout, reshaped_rows(goal, part, view, partition))
    found = moved()
    if part.recipe.merge is None:
        return found
    return lambda partition: _merged(part, layout, found(partition))


def _moved_here(goal: ReshapeTarget, views: Views, stack: contextlib.ExitStack) -> Moved:
    def moved(part: Part, batch: int) -> Callable[[int], Iterator[Records]]:
        view = views(part, batch)
        assert view is not None
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="floodmark-runs-"))
        return sorted_out(goal, part, view, Path(place, "runs")).rows

    return moved


def _encoded(part: Part, layout: Layout, rows: Rows) -> Iterator[Records]:
    for keys, values in rows:
        if len(keys):
            yield encode(layout, keys, values, part.key_id, part.value_id)


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
    goal: ReshapeTarget,
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
            "Repeat the command: all of it is written again.",
        )


def _store_at(
    goal: ReshapeTarget,
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
