"""The verbs of the campaign, each as a function from a stream's place to what was done."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from floodmark import api
from floodmark.changes.apply import Carrying, Change
from floodmark.checkpoint.offsets import parse_offsets
from moves.inputs import Input
from moves.streams import Stream

PLANNED = Carrying()
Options = dict[str, Any]


@dataclass(frozen=True)
class Moved:
    """A stream that verbs move from place to place."""

    stream: Stream
    base: Path
    place: Path
    """Where its checkpoint is now."""
    output: Path
    input: Input
    number: int = 0

    def at(self, place: Path) -> Moved:
        return replace(self, place=place, number=self.number + 1)

    @property
    def new(self) -> Path:
        return self.base / f"new-{self.number}"

    @property
    def file_sink(self) -> str | None:
        return str(self.output) if self.stream.sink == "file" else None

    def rewind_alone(self, options: Options, how: Carrying) -> Change:
        """The file sink's log is left as it is."""
        return api.rewind(str(self.place), to_batch=0, carrying=how, **options)

    def rewind(self, options: Options, how: Carrying) -> Change:
        return api.rewind(str(self.place), to_batch=0, sink=self.file_sink, carrying=how, **options)

    def rewind_to_time(self, options: Options, how: Carrying) -> Change:
        entry = parse_offsets((self.place / "offsets/0").read_bytes())
        assert entry.metadata is not None
        time_ms = entry.metadata.batch_timestamp_ms
        return api.rewind(
            str(self.place), to_time=_moment(time_ms), sink=self.file_sink, carrying=how, **options
        )

    def rewind_to_offsets(self, options: Options, how: Carrying) -> Change:
        given = self.base / "given.json"
        given.write_text(json.dumps(self.input.given_back(0, self.place)))
        return api.rewind(
            str(self.place), to_offsets=str(given), sink=self.file_sink, carrying=how, **options
        )

    def restore(self, options: Options, how: Carrying) -> Change:
        given = dict(options)
        place = self.place if given.pop("in_place") else self.new
        if given.pop("named", False):
            given["sink"] = self.file_sink
        return api.restore(str(self.base / "repo"), str(place), carrying=how, **given)

    def upgrade(self, options: Options, how: Carrying) -> Change:
        return api.upgrade(str(self.place), str(self.new), carrying=how, **options)

    @property
    def first(self) -> Moved:
        """Where the stream was before any verb moved it."""
        return replace(self, place=self.base / "cp")

    def upgrade_of_the_first(self, options: Options, how: Carrying) -> Change:
        """Again from the old checkpoint, which the moved stream has left behind."""
        return self.first.upgrade(options, how)

    def copy_of_the_first(self, options: Options, how: Carrying) -> Change:
        return self.first.copy(options, how)

    def restore_of_the_first(self, options: Options, how: Carrying) -> Change:
        return self.first.restore({**options, "in_place": True}, how)

    def repair(self, options: Options, how: Carrying) -> Change:
        """Falls back to an earlier batch: the newest state, or entry, is lost."""
        _lose_newest(self.place, self.stream)
        sink = str(self.output) if self.stream.sink in ("file", "delta") else None
        return api.repair(str(self.place), sink=sink, carrying=how, **options)

    def copy(self, options: Options, how: Carrying) -> Change:
        return api.copy(str(self.place), str(self.new), carrying=how, **options)

    def repartition(self, options: Options, how: Carrying) -> Change:
        return api.repartition(
            str(self.place), str(self.new), partitions=3, carrying=how, **options
        )

    def convert(self, options: Options, how: Carrying) -> Change:
        return api.convert(
            str(self.place), str(self.new), provider="rocksdb", carrying=how, **options
        )

    def undo(self, options: Options, how: Carrying) -> Change:
        carrying = replace(how, accept=tuple(options.get("accept", ())))
        return api.undo(str(self.place), sink=self.file_sink, carrying=carrying)


Move = Callable[[Moved, Options, Carrying], Change]


@dataclass(frozen=True)
class Verb:
    move: Move
    options: Mapping[str, Any] = field(default_factory=dict)
    only: Callable[[Stream], bool] = lambda stream: True


def _stateless(stream: Stream) -> bool:
    return stream.shape.name == "stateless"


def _stateful(stream: Stream) -> bool:
    return not _stateless(stream)


VERBS: dict[str, Verb] = {
    "rewind": Verb(Moved.rewind),
    "rewind --keep-identity": Verb(Moved.rewind, {"keep_identity": True}),
    "rewind without --sink": Verb(Moved.rewind_alone, only=lambda stream: stream.sink == "file"),
    "rewind --to-time": Verb(Moved.rewind_to_time),
    "rewind --to-offsets": Verb(Moved.rewind_to_offsets, only=_stateless),
    "restore in place": Verb(Moved.restore, {"in_place": True}),
    "restore in place --sink": Verb(
        Moved.restore, {"in_place": True, "named": True}, lambda stream: stream.sink == "file"
    ),
    "restore in place --keep-identity": Verb(
        Moved.restore, {"in_place": True, "keep_identity": True}
    ),
    "restore elsewhere": Verb(Moved.restore, {"in_place": False}),
    "upgrade": Verb(Moved.upgrade),
    "upgrade --drop-in-flight": Verb(
        Moved.upgrade, {"drop_in_flight": True}, lambda stream: stream.in_flight
    ),
    "upgrade --from-batch": Verb(Moved.upgrade, {"from_batch": 0}),
    "upgrade --new-identity": Verb(Moved.upgrade, {"new_identity": True}),
    "upgrade --without-state": Verb(Moved.upgrade, {"without_state": True}),
    "upgrade --without-state --from-batch": Verb(
        Moved.upgrade, {"without_state": True, "from_batch": 0}
    ),
    "upgrade --restart-numbering": Verb(
        Moved.upgrade, {"restart_numbering": True}, only=_stateless
    ),
    "upgrade --restart-numbering --new-identity": Verb(
        Moved.upgrade, {"restart_numbering": True, "new_identity": True}, _stateless
    ),
    "repair": Verb(Moved.repair),
    "copy": Verb(Moved.copy),
    "copy --new-identity": Verb(Moved.copy, {"new_identity": True}),
    "repartition": Verb(Moved.repartition, only=_stateful),
    "convert": Verb(Moved.convert, only=_stateful),
    "undo": Verb(Moved.undo),
    "upgrade of the first": Verb(Moved.upgrade_of_the_first),
    "copy of the first": Verb(Moved.copy_of_the_first),
    "restore of the first": Verb(Moved.restore_of_the_first),
}
OF_THE_FIRST = " of the first"
OF_CHAINS = ("undo", *(name for name in VERBS if name.endswith(OF_THE_FIRST)))
"""Verbs that need another before them."""
CHAINS = (
    "rewind and undo",
    "restore in place and undo",
    "rewind then rewind",
    "rewind without --sink and upgrade",
    "rewind and restore in place",
    "rewind then restore in place",
    "restore in place then restore in place",
    "restore in place then upgrade",
    "rewind then upgrade --new-identity",
    "upgrade then rewind",
    "upgrade --without-state then rewind",
    "repair then restore in place",
    "upgrade then upgrade",
    "upgrade then upgrade of the first",
    "upgrade then copy of the first",
    "upgrade then restore of the first",
    "copy then upgrade of the first",
    "copy then copy",
    "upgrade --new-identity then upgrade of the first",
    "rewind then upgrade then rewind",
    "upgrade then rewind then upgrade",
    "rewind without --sink and upgrade then upgrade",
)


def parted(name: str) -> list[str]:
    """`a then b`: the stream runs on between them; `a and b`: it does not."""
    return re.split(" then | and ", name)


def verbs_for(stream: Stream) -> Iterator[str]:
    """Moves one after another are tried on fewer streams."""
    few = stream.source == "files" and stream.shape.name in ("stateless", "distinct")
    chains = CHAINS if few and stream.sink in ("file", "delta", "append") else CHAINS[:2]
    for name in (*VERBS, *chains):
        steps = parted(name)
        if steps[0] not in OF_CHAINS and all(VERBS[step].only(stream) for step in steps):
            yield name


def committed(checkpoint: Path) -> set[int]:
    return {int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")}


def planned(checkpoint: Path) -> set[int]:
    return {int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*")}


def _lose_newest(checkpoint: Path, stream: Stream) -> None:
    newest = max(committed(checkpoint))
    if stream.shape.name == "stateless":
        (checkpoint / f"offsets/.{newest}.crc").unlink(missing_ok=True)
        (checkpoint / f"offsets/{newest}").write_bytes(b"v1\n{")
        return
    for path in (checkpoint / "state").glob(f"*/*/{newest + 1}.delta"):
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _moment(time_ms: int) -> str:
    from datetime import datetime, timezone

    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).isoformat()
