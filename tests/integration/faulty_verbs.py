"""The verbs that are tried on a store that fails: what each needs, and what it has to leave."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from drawn_code import WIDER, carried
from floodmark import api
from floodmark.changes.apply import Carrying, begin_new_place, plan_new_place
from floodmark.changes.in_use import Clock
from floodmark.changes.planners.bootstrap import FirstBatch, plan_bootstrap
from floodmark.changes.state_rewriter import StateRewriter
from floodmark.checkpoint.commits import parse_commit
from floodmark.checkpoint.offsets import parse_offsets
from floodmark.errors import CannotRead
from floodmark.state.keys.grouping import grouping_of
from floodmark.statestore.rewrite.target import Part

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2" / "sales-hdfs" / "checkpoint"


class Store(Protocol):
    """Where objects lie as files of this machine."""

    def place(self, name: str) -> str: ...

    def objects(self, place: str) -> Path: ...


@dataclass(frozen=True)
class Place:
    """A copy of the golden checkpoint on the server, and room beside it."""

    store: Store
    url: str
    options: dict[str, Any]

    @property
    def go(self) -> Carrying:
        clock = Clock(pause=lambda seconds: None)
        return Carrying(execute=True, clock=clock, storage=self.options)

    @property
    def new(self) -> str:
        return f"{self.url}-new"

    @property
    def kept(self) -> str:
        return f"{self.url}-kept"

    def tree(self, url: str) -> dict[str, bytes]:
        """What lies there, by the server's own folder; the tool's notes left out."""
        folder = self.store.objects(url)
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and "_floodmark" not in path.parts
        }

    def rows(self, url: str) -> list[str]:
        found = api.state(url, storage=self.options).to_arrow().to_pylist()
        return sorted(str((row["key"], row["value"])) for row in found)


def new_place(store: Store, options: dict[str, Any]) -> Place:
    made = Place(store, store.place("faults"), options)
    folder = store.objects(made.url)
    shutil.copytree(GOLDEN, folder)
    notes = folder / "_floodmark" / "starts"
    notes.mkdir(parents=True)
    for number, sink in enumerate(("console", "noop")):  # the last start's sink is the stream's
        note = {"sink": sink, "output_mode": "update", "next_batch": 2 * number}
        (notes / f"{number}.json").write_text(json.dumps({"floodmark": "start-note", **note}))
    return made


# Reading ----------------------------------------------------------------------------------------


def _inspected(place: Place) -> Any:
    found = api.inspect(place.url, place.options)
    if found.unreadable:  # said beside what could be read
        raise CannotRead(found.unreadable[0].reason, do="Try again.")
    return found


def _batches(place: Place) -> Any:
    return [one.batch for one in api.batches(place.url, storage=place.options)]


def _doctor(place: Place) -> Any:
    """A file that storage did not give is a finding, which says so."""
    found = api.doctor(place.url, storage=place.options, read_data=True)
    for one in found:
        if "answered with an error" in f"{one.what} {one.why}":
            raise CannotRead(one.what, do=one.do or "Try again.")
    return [one.rule for one in found]


def _diff(place: Place) -> Any:
    found = api.diff_state(place.url, batches=(1, 2), storage=place.options)
    for one in found:
        if one.reason is not None:  # said beside the other stores
            raise CannotRead(one.reason, do="Try again.")
    return str(found)


def _scanned(place: Place) -> Any:
    found = [
        (one.path, one.committed_batch, one.findings) for one in api.scan(place.url, place.options)
    ]
    for path, _, findings in found:
        if findings:  # said beside the others
            raise CannotRead(f"{path}: {findings[0]}", do="Try again.")
    return found


def _key(place: Place) -> Any:
    view = api.state(place.url, storage=place.options)
    return [view.lookup({"customerId": name}) for name in ("", "c1", "Zoë")]


READING: dict[str, Callable[[Place], Any]] = {
    "inspect": _inspected,
    "batches": _batches,
    "doctor": _doctor,
    "state": lambda at: at.rows(at.url),
    "state --key": _key,
    "state --stats": lambda at: api.state(at.url, storage=at.options).stats(),
    "offsets": lambda at: api.offsets(at.url, storage=at.options),
    "files": lambda at: [str(one) for one in api.files(at.url, storage=at.options)],
    "scan": _scanned,
    "diff --state": _diff,
}


# Changing ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verb:
    do: Callable[[Place], Any]
    left: Callable[[Place], Any] = lambda at: at.tree(at.new)
    """The same, however often the verb was stopped."""
    before: Callable[[Place], Any] = lambda at: None
    in_place: bool = False
    removes: bool = False
    """Of what it has removed nothing tells, so that it finds nothing when it is repeated."""


def _here(place: Place) -> Any:
    found = place.tree(place.url)
    assert len(json.loads(found.pop("metadata"))["id"]) == 36  # a new one each time
    return found


def _restored(place: Place) -> Any:
    """A backup's names and times are its own: what can be taken out of it counts."""
    goal = f"{place.url}-restored"
    api.restore(place.new, goal, storage=place.options, carrying=place.go)
    return place.tree(goal)


def _in_rocksdb(place: Place) -> Any:
    """Its tables hold times and names that are drawn: the rows count."""
    others = {
        path: data for path, data in place.tree(place.new).items() if not path.startswith("state/")
    }
    found = [one.rule for one in api.doctor(place.new, storage=place.options, read_data=True)]
    return others, place.rows(place.new), found


def _anew(place: Place) -> Any:
    found = place.tree(place.new)
    assert len(json.loads(found.pop("metadata"))["id"]) == 36
    return found


def _undone(place: Place) -> Any:
    """The checkpoint as it was; of what made a new place nothing is left."""
    return place.tree(place.url), place.tree(place.new)


def _forgotten(place: Place) -> Any:
    folder = place.store.objects(place.url) / "_floodmark" / "kept"
    return _here(place), [path.name for path in folder.rglob("*") if path.is_file()]


def _rewound(place: Place) -> None:
    api.rewind(
        place.url, to_batch=1, accept="out-of-reach", storage=place.options, carrying=place.go
    )


def _upgraded(place: Place) -> None:
    api.upgrade(place.url, place.new, storage=place.options, carrying=place.go)


def _backed_up(place: Place) -> None:
    api.backup(place.url, place.kept, storage=place.options, carrying=place.go)


def _migrated(place: Place) -> Any:
    """As the verb does it when Spark has drawn the new code: one aggregate more."""
    how = replace(place.go, rewriter=StateRewriter())
    plan = plan_new_place(
        place.url, place.new, lambda origin: carried(origin, place.new, WIDER), how
    )
    return begin_new_place(plan, how)


def _three_customers(part: Part, partition: int) -> Any:
    names = ["ada", "bo", "cy"]
    keys = pa.array([{"customerId": name} for name in names])
    homes = grouping_of(part.reading).hashes(keys).view("i4").astype("i8") % 2
    mine = pa.array(homes == partition)
    values = [
        pa.array([None] * 3, pa.float64()),
        pa.array([1, 2, 3], pa.int64()),
        pa.array([1.0, 2.0, 3.0]),
    ]
    fields = [
        pa.field("max", pa.float64()),
        pa.field("count", pa.int64(), False),
        pa.field("sum", pa.float64()),
    ]
    yield keys.filter(mine), pa.StructArray.from_arrays(values, fields=fields).filter(mine)


def _begun(place: Place) -> Any:
    """As the verb does it when Spark has run the code's first batch and read the table."""
    entry = parse_offsets((GOLDEN / "offsets" / "0").read_bytes())
    first = FirstBatch(entry, parse_commit((GOLDEN / "commits" / "0").read_bytes()), {})
    plan = plan_bootstrap(place.new, WIDER, first, [(0, "default")], {})
    how = replace(place.go, rewriter=StateRewriter(lambda operator: _three_customers))
    return begin_new_place(plan, how)


def _loses_a_delta(place: Place) -> None:
    (place.store.objects(place.url) / "state/0/0/3.delta").unlink()


CHANGING: dict[str, Verb] = {
    "upgrade": Verb(_upgraded),
    "copy": Verb(lambda at: api.copy(at.url, at.new, storage=at.options, carrying=at.go)),
    "repartition": Verb(
        lambda at: api.repartition(at.url, at.new, partitions=3, storage=at.options, carrying=at.go)
    ),
    "convert": Verb(
        lambda at: api.convert(
            at.url, at.new, provider="rocksdb", storage=at.options, carrying=at.go
        ),
        left=_in_rocksdb,
    ),
    "migrate": Verb(_migrated),
    "bootstrap": Verb(_begun, left=_anew),
    "backup": Verb(
        lambda at: api.backup(at.url, at.new, storage=at.options, carrying=at.go), left=_restored
    ),
    "restore": Verb(
        lambda at: api.restore(at.kept, at.new, storage=at.options, carrying=at.go),
        before=_backed_up,
    ),
    "rewind": Verb(_rewound, left=_here, in_place=True),
    "repair": Verb(
        lambda at: api.repair(at.url, accept="repeats", storage=at.options, carrying=at.go),
        left=_here,
        before=_loses_a_delta,
        in_place=True,
    ),
    "compact": Verb(
        lambda at: api.compact(at.url, keep=1, storage=at.options, carrying=at.go),
        left=_here,
        in_place=True,
    ),
    "undo of a rewind": Verb(
        lambda at: api.undo(at.url, storage=at.options, carrying=at.go),
        left=_undone,
        before=_rewound,
        in_place=True,
        removes=True,
    ),
    "undo of an upgrade": Verb(
        lambda at: api.undo(at.new, storage=at.options, carrying=at.go),
        left=_undone,
        before=_upgraded,
        removes=True,
    ),
    "forget": Verb(
        lambda at: api.forget(at.url, storage=at.options, carrying=at.go),
        left=_forgotten,
        before=_rewound,
        in_place=True,
        removes=True,
    ),
}
