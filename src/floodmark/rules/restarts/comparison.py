"""Everything that a rule of compatibility may ask: what the checkpoint holds, what the code is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from floodmark.checkpoint.layout import JOIN_STORES
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.operator_kinds import kind_of, paired, unclear_kind
from floodmark.checkpoint.outline import (
    FamilyOutline,
    OperatorOutline,
    Outline,
    SourceOutline,
)
from floodmark.checkpoint.start_note import LastStart
from floodmark.connectors.files.offset import FILE_SOURCES
from floodmark.redaction import HIDDEN, is_hidden
from floodmark.rules.restarts.differences import DifferenceKind, PlanDifference, differences, untold
from floodmark.rules.restarts.rehearsal import Rehearsal

SCHEMA_CHECK = "spark.sql.streaming.stateStore.stateSchemaCheck"
AGGREGATIONS = frozenset(
    {"stateStoreSave", "StatefulStreamlineAggregate", "sessionWindowStateStoreSaveExec"}
)
DEDUPLICATIONS = frozenset({"dedupe", "dedupeWithinWatermark"})
JOINS = frozenset({"symmetricHashJoin"})
GROUP_STATES = frozenset({"flatMapGroupsWithState", "applyInPandasWithState"})
TRANSFORMS = frozenset(
    {
        "transformWithStateExec",
        "transformWithStateInPandasExec",
        "transformWithStateInPySparkExec",
    }
)
_ALIKE = {
    "s3a": "s3",
    "s3n": "s3",
    "hdfs": "",
    "webhdfs": "",
    "swebhdfs": "",
    "viewfs": "",
    "file": "",
}
_UNTOLD = ("filters and projections", "Python functions", "the sink", "the output mode")


@dataclass(frozen=True)
class Comparison:
    checkpoint: Checkpoint
    held: tuple[OperatorOutline, ...]
    new: Outline
    last: LastStart | None = None
    fingerprint: str | None = None
    """Of the new code's file."""
    sink_batch: int | None = None
    """The newest batch in the log of the new code's output folder."""
    rehearsal: Rehearsal | None = None
    places: tuple[str, ...] = ()
    """Where the checkpoint lies, in full and with its links followed."""
    seen: Mapping[int, str] = field(default_factory=dict)
    """A file that each source of files has read, by the source's own log."""
    windows: Mapping[int, int] = field(default_factory=dict)
    """Operator → how many microseconds the windows in its state last."""
    application: tuple[str, ...] = ("APP.py",)
    """The new code as `migrate --app` takes it, with the options that belong to it."""

    @property
    def has_plans(self) -> bool:
        """Both plans are known, so that meanings can be compared."""
        return self.last is not None and self.last.tree is not None

    @property
    def not_compared(self) -> tuple[str, ...]:
        """What no checkpoint tells, and no note of its last start either."""
        if self.has_plans:
            return ()
        if not self.is_stateful:
            return _UNTOLD
        return (*_UNTOLD, "what its keys and aggregates are made of", "join types and conditions")

    @cached_property
    def differences(self) -> tuple[PlanDifference, ...]:
        """Between the plan of the last start and that of the new code; none without a note."""
        if self.last is None or self.last.tree is None:
            return ()
        found = differences(self.last.tree, self.new.tree)
        hidden = untold(self.last.tree, self.new.tree)
        if hidden is not None and (
            self.fingerprint is None or self.fingerprint != self.last.fingerprint
        ):
            found = (*found, hidden)
        before, now = self.last.spark_version, self.new.spark_version
        if found and version_of(before) != version_of(now):
            # Each Spark writes some plans in another way: which difference is whose?
            feeds = next((one.feeds for one in found if one.feeds is not None), None)
            what = f"The plans of Spark {before} and {now} differ, and cannot be compared exactly."
            return (
                PlanDifference(
                    DifferenceKind.ROWS if feeds else DifferenceKind.OUTPUT, what, "the plan", feeds
                ),
            )
        return found

    def differences_of(self, *kinds: DifferenceKind) -> tuple[PlanDifference, ...]:
        return tuple(one for one in self.differences if one.kind in kinds)

    @property
    def is_stateful(self) -> bool:
        return bool(self.held)

    @property
    def same_operators(self) -> bool:
        """The same stateful operators in the same places, as far as is known."""
        return len(self.held) == len(self.new.operators) and all(
            is_same_kind(held, new) for held, new in self.pairs()
        )

    def pairs(self) -> Iterator[tuple[OperatorOutline, OperatorOutline]]:
        by_id = {one.operator: one for one in self.new.operators}
        for held in self.held:
            if held.operator in by_id:
                yield held, by_id[held.operator]

    def pairs_of(self, kinds: frozenset[str]) -> Iterator[tuple[OperatorOutline, OperatorOutline]]:
        """Operators that are the same before and after; schemas of others are not compared."""
        for held, new in self.pairs() if self.same_operators else self.matched():
            if operator_kind(new) in kinds:
                yield held, new

    def matched(self) -> Iterator[tuple[OperatorOutline, OperatorOutline]]:
        """By kind and order, as `migrate` takes them, where others have come or gone."""
        before, after = ([kind_of(operator_kind(one)) for one in ops] for ops in self.operators)
        if unclear_kind(before, after) is not None:
            return
        for new, at in zip(self.new.operators, paired(before, after), strict=True):
            if at is not None:
                yield self.held[at], new

    @property
    def operators(self) -> tuple[tuple[OperatorOutline, ...], tuple[OperatorOutline, ...]]:
        return self.held, tuple(self.new.operators)

    def is_unchecked(self, operator: int) -> bool:
        """Spark does not compare the schemas of this operator's state."""
        if self.new.conf.get(SCHEMA_CHECK, "true").lower() == "false":
            return True
        return self.is_moved(operator)

    def is_moved(self, operator: int) -> bool:
        """Its metadata names schema files by paths of another place."""
        metadata = self.checkpoint.operators.get(operator)
        if metadata is None or not metadata.stores:
            return False
        here = [plain_path(place) + "/" for place in (self.checkpoint.path, *self.places)]
        paths = [plain_path(path) for store in metadata.stores for path in store.schema_paths]
        return any(not path.startswith(tuple(here)) for path in paths)

    def named_sources(self) -> bool:
        """An offset log of version 2: sources are known by name, not by place alone."""
        return self.checkpoint.offset_log_version == 2


def plain_path(location: str) -> str:
    """The place without what differs between two ways of writing it."""
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        return "/" + location.strip("/")
    if scheme in ("hdfs", "webhdfs", "swebhdfs", "viewfs") and rest.startswith("//"):
        rest = rest[2:].partition("/")[2]  # a name node's address differs by protocol
    return f"{_ALIKE.get(scheme, scheme)}/{rest.strip('/')}"


def operator_kind(operator: OperatorOutline) -> str:
    """Its name; before Spark 4.0 operators had none, but a join shows by its stores."""
    if operator.name is not None:
        return operator.name
    return "symmetricHashJoin" if JOIN_STORES[0] in operator.stores else "stateStoreSave"


def is_same_kind(held: OperatorOutline, new: OperatorOutline) -> bool:
    if held.name is None or new.name is None:
        return (JOIN_STORES[0] in held.stores) == (JOIN_STORES[0] in new.stores)
    plain = {"stateStoreSave", "StatefulStreamlineAggregate"}
    return held.name == new.name or {held.name, new.name} <= plain


def families(
    held: OperatorOutline, new: OperatorOutline
) -> Iterator[tuple[str, FamilyOutline, FamilyOutline]]:
    """Stores and column families that both have, by name."""
    for store, before in held.stores.items():
        after = {one.name: one for one in new.stores.get(store, ())}
        for family in before:
            if family.name in after:
                name = store if family.name == "default" else family.name
                yield name, family, after[family.name]


def refuses_other_files(source: SourceOutline, before: SourceOutline | None) -> bool:
    """A file source looks at the last batch's files again, and wants them below its folder."""
    path, earlier = source.place or "", (before.place if before else None) or ""
    if source.kind not in FILE_SOURCES or any(sign in path for sign in "*?[{"):
        return False
    inside = plain_path(earlier) + "/"
    return not inside.startswith(plain_path(path).rstrip("/") + "/")


def reads(source: SourceOutline, file: str) -> bool | None:
    """Whether a file lies where a source reads; None where its path does not tell."""
    path = source.place
    if source.kind not in FILE_SOURCES or path is None or any(sign in path for sign in "*?[{"):
        return None
    folder, there = plain_path(path).rstrip("/") + "/", plain_path(file)
    is_whole = path.startswith("/") or ":" in path
    return there.startswith(folder) or (not is_whole and folder in there)


def version_of(text: str) -> tuple[int, int]:
    parts = [part for part in text.split(".")[:2] if part.isdecimal()]
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 else (0, 0)


def option_changes(
    before: Mapping[str, str], after: Mapping[str, str]
) -> list[tuple[str, str | None, str | None]]:
    """Options that are not what they were. Hidden ones are compared by their digests."""
    return [
        (key, before.get(key), after.get(key))
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key) and before.get(key) != HIDDEN
    ]


def change_words(key: str, before: str | None, after: str | None) -> str:
    if is_hidden(before) and is_hidden(after):
        return f"{key} has another value, which is hidden"
    return f"{key} is {_value_words(after)}, and was {_value_words(before)}"


def _value_words(value: str | None) -> str:
    return "nothing" if value is None else "a hidden value" if is_hidden(value) else value
