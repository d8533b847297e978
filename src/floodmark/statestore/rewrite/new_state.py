"""Writes an operator's state again: old or given rows, in the partitions where Spark looks.

A store is read one piece at a time. If keys stay unchanged, so do their partitions, and the pieces
go straight through. If keys change, rows wait on this machine's disk, sorted by their new
partition, and memory holds one partition.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.checkpoint.layout import FileInfo, state_files, store_folder
from floodmark.errors import StoppedMidway
from floodmark.progress import counted
from floodmark.state.files.records import Records
from floodmark.state.shapes.tally import Tally, tally
from floodmark.statestore.rewrite.old_rows import Moved, OldRows, OldState, encoded
from floodmark.statestore.rewrite.sorted_runs import Runs
from floodmark.statestore.rewrite.target import Part, StateTarget, layout_of
from floodmark.statestore.store import StoreAt
from floodmark.statestore.write import StoreFormat, WrittenStore, write_store
from floodmark.storage.files import Files, WritableFiles

if TYPE_CHECKING:
    from floodmark.statestore.rewrite.old_rows import Rows

_AT_ONCE = 2


Given = Callable[[Part, int], "Rows"]
"""The rows that a user's function made, for one part and one partition."""


@dataclass(frozen=True)
class Written:
    """The written files, so that they can be read back."""

    goal: StateTarget
    stores: Mapping[tuple[int, str], WrittenStore]
    again: Mapping[tuple[int, str], WrittenStore]
    """The state that the in-flight batch has left, as changes after the others."""

    def of(self, partition: int) -> Written:
        stores, again = (
            {place: one for place, one in found.items() if place[0] == partition}
            for found in (self.stores, self.again)
        )
        return Written(self.goal, stores, again)


def write_state(
    goal: StateTarget,
    target: WritableFiles,
    old: OldState,
    given: Given | None = None,
    partitions: Sequence[int] | None = None,
    moved: Moved | None = None,
) -> Written:
    """Write every store of every partition, or of some.

    `moved` returns the rows that come from other partitions; without it they are sorted here.
    """
    chosen = range(goal.partitions) if partitions is None else partitions
    places = [(partition, store) for partition in chosen for store in goal.stores]
    with contextlib.ExitStack() as stack:
        here = _MovedHere(goal, old, stack)
        rows = _Sources(goal, old, given, moved or here, goal.batch)
        stores = _each(places, lambda place: _write_one(goal, target, place, rows))
        here.require_all(goal.batch, stores)
        if goal.in_flight is None:
            return Written(goal, stores, {})
        later = _Sources(goal, old, given, moved or here, goal.in_flight)
        again = _each(places, lambda place: _write_again(goal, target, place, rows, later))
        here.require_all(goal.in_flight, again)
        return Written(goal, stores, again)


def _each(
    places: list[tuple[int, str]], write: Callable[[tuple[int, str]], WrittenStore]
) -> dict[tuple[int, str], WrittenStore]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        written = pool.map(write, places)
        return {place: next(written) for place in counted(places, "partitions of state")}


class _Sources:
    """The rows of every part after a batch, as the new stores keep them."""

    def __init__(
        self,
        goal: StateTarget,
        old: OldState,
        given: Given | None,
        moved: Moved,
        batch: int,
    ) -> None:
        self._parts = []
        for part in goal.parts:
            rows = old(part, batch)
            moves = not part.given and rows is not None and rows.moves
            found = moved(part, batch) if moves else None
            self._parts.append((part.store, _source(goal, part, rows, given, found)))

    def rows(self, place: tuple[int, str]) -> Iterator[Records]:
        partition, store = place
        for mine, source in self._parts:
            if mine == store:
                yield from source(partition)


def _write_one(
    goal: StateTarget, target: WritableFiles, place: tuple[int, str], sources: _Sources
) -> WrittenStore:
    partition, store = place
    return write_store(
        target,
        store_folder(goal.operator, partition, store),
        goal.version,
        sources.rows(place),
        format_of(goal, store),
        goal.unique_id(partition, store),
    )


def _write_again(
    goal: StateTarget,
    target: WritableFiles,
    place: tuple[int, str],
    before: _Sources,
    after: _Sources,
) -> WrittenStore:
    from floodmark.statestore.change_file import write_change

    partition, store = place
    folder = store_folder(goal.operator, partition, store)
    rows = before.rows(place), after.rows(place)
    return write_change(target, folder, goal.version + 1, *rows, format_of(goal, store))


def format_of(goal: StateTarget, store: str) -> StoreFormat:
    families = goal.families(store)
    internal = frozenset(name for name in families if name.startswith("$"))
    return StoreFormat(
        goal.provider, goal.codec, goal.row_checksums, families, internal, goal.zip_version
    )


def _source(
    goal: StateTarget,
    part: Part,
    old: OldRows | None,
    given: Given | None,
    moved: Callable[[int], Iterator[Records]] | None,
) -> Callable[[int], Iterator[Records]]:
    """Return a partition's rows as the new store keeps them. `moved` has rows that change
    partitions.
    """
    if part.given:
        assert given is not None
        rows = given
        return lambda partition: encoded(goal, part, rows(part, partition))
    if old is None:
        return lambda partition: iter(())
    if moved is None:
        return old.rows
    if part.recipe is None or part.recipe.merge is None:
        return moved
    return lambda partition: merged_rows(goal, part, moved(partition))


class _MovedHere:
    """Keeps rows that change partitions on this machine's disk, and counts the rows it has read."""

    def __init__(self, goal: StateTarget, old: OldState, stack: contextlib.ExitStack) -> None:
        self._goal, self._old, self._stack = goal, old, stack
        self._read: dict[tuple[str, int], Tally] = {}

    def __call__(self, part: Part, batch: int) -> Callable[[int], Iterator[Records]]:
        old = self._old(part, batch)
        assert old is not None
        place = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="floodmark-runs-"))
        runs, total = Runs(Path(place, "runs"), self._goal.partitions), Tally()
        for partition in old.partitions:
            for records, homes in old.placed(partition):
                runs.add(records, homes)
                total += tally(records)
        runs.close()
        self._read[part.store, batch] = total
        return runs.rows

    def require_all(self, batch: int, written: Mapping[tuple[int, str], WrittenStore]) -> None:
        if self._goal.keeps_rows:
            read = {store: total for (store, one), total in self._read.items() if one == batch}
            require_same_rows(self._goal, read, written)


def require_same_rows(
    goal: StateTarget,
    read: Mapping[str, Tally],
    written: Mapping[tuple[int, str], WrittenStore],
) -> None:
    """Raise unless the written rows are exactly the rows that were read."""
    for store, wanted in read.items():
        tallies = (one.tally for (_, name), one in written.items() if name == store)
        found = sum(tallies, Tally())
        if found != wanted:
            raise StoppedMidway(
                f"operator {goal.operator}, store {store}: {wanted.rows} rows were read "
                f"({wanted.checksum}), but {found.rows} were written ({found.checksum})",
                "Rows were lost or duplicated on the way to their new partitions.",
                "Repeat the command. If it happens again, storage does not keep the data that "
                "is written to it.",
            )


def merged_rows(goal: StateTarget, part: Part, rows: Iterator[Records]) -> Iterator[Records]:
    """Merge keys that became the same: they are in one partition, which is processed as a whole."""
    import pyarrow as pa

    from floodmark.state.shapes.merging import merged

    layout = layout_of(goal, part)
    found = [layout.decode(records) for records in rows]
    schema, recipe = part.reading.schema, part.recipe
    if not found or schema is None or recipe is None or recipe.merge is None:
        return
    keys, values = (pa.concat_arrays([pair[at] for pair in found]) for at in (0, 1))
    pair = merged(keys, values, schema.key, schema.value, recipe.merge)
    yield from encoded(goal, part, iter([pair]))


def check_state(written: Written, target: Files) -> None:
    """Read everything back; raise if the rows differ from those that were written."""
    goal = written.goal
    asked = [(goal.version, place, one.files, one.tally) for place, one in written.stores.items()]
    for place, one in written.again.items():
        files = (*written.stores[place].files, *one.files)
        asked.append((goal.version + 1, place, files, one.tally))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(lambda item: _check_one(goal, target, *item), asked):
            pass


def _check_one(
    goal: StateTarget,
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
            "Storage did not keep the written data, or something else writes there.",
            "Repeat the command: it writes everything again.",
        )


def _store_at(
    goal: StateTarget,
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
