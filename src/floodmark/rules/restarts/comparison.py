"""Holds all inputs of the compatibility rules: the checkpoint's content, and the new code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from floodmark.checkpoint import operator_kinds as kinds
from floodmark.checkpoint.conf_keys import SOURCE_EVOLUTION
from floodmark.checkpoint.layout import JOIN_STORES
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.operator_kinds import kind_of, names_of, paired, unclear_kind
from floodmark.checkpoint.outline import FamilyOutline, OperatorOutline, Outline, SourceOutline
from floodmark.checkpoint.start_note import LastStart
from floodmark.connectors.files.offset import FILE_SOURCES
from floodmark.redaction import HIDDEN, is_hidden
from floodmark.rules.restarts.differences import DifferenceKind, PlanDifference, differences, untold
from floodmark.rules.restarts.kept_branches import without_branches
from floodmark.rules.restarts.rehearsal import Rehearsal
from floodmark.rules.restarts.source_matching import (
    HeldSource,
    SourceMatching,
    match_sources,
    plain_path,
)
from floodmark.rules.restarts.spark_defaults import Version, planned_by, version_of

SCHEMA_CHECK = "spark.sql.streaming.stateStore.stateSchemaCheck"
AGGREGATIONS = names_of(kinds.AGGREGATION, kinds.SESSION)
DEDUPLICATIONS = names_of(kinds.DEDUP, kinds.DEDUP_WITHIN)
JOINS = names_of(kinds.JOIN)
GROUP_STATES = names_of(kinds.GROUPS)
TRANSFORMS = names_of(kinds.VARIABLES)
MEMORY_SINK = "memory"
_NO_SINK = "noop"
_UNTOLD = (
    "filters and projections",
    "Python functions",
    "the sink",
    "the output mode",
    "the session's settings",
)


@dataclass(frozen=True)
class Comparison:
    checkpoint: Checkpoint
    held: tuple[OperatorOutline, ...]
    new: Outline
    last: LastStart | None = None
    fingerprint: str | None = None
    """The fingerprint of the new code's file."""
    sink_batch: int | None = None
    """The newest batch in the log of the new code's output folder."""
    rehearsal: Rehearsal | None = None
    places: tuple[str, ...] = ()
    """The checkpoint's locations: the full path, and the path with its links followed."""
    seen: Mapping[int, str] = field(default_factory=dict)
    """Source → a file that it has read, by the source's own log."""
    windows: Mapping[int, int] = field(default_factory=dict)
    """Operator → the length of the windows in its state, in microseconds."""
    application: tuple[str, ...] = ("APP.py",)
    """The new code in the form of `migrate --app`, with its options."""
    code_checkpoint: str | None = None
    """The checkpoint that the new code names, if it names one."""
    code_checkpoint_is_free: bool = False
    """Whether `code_checkpoint` is another place than this checkpoint's, and still empty."""
    tables: Mapping[int, str] = field(default_factory=dict)
    """Source of the new code → the id of the Delta table that it reads."""
    folders: tuple[str, ...] = ()
    """The name that Spark gives to the folder of each source of the new code, below sources/."""
    told_sources: Mapping[int, int] = field(default_factory=dict)
    """Source of the new code → source of the checkpoint, given by the user."""
    said_kinds: frozenset[str] = frozenset()
    """Sources of the checkpoint whose kind the user has given."""

    @property
    def without_sink(self) -> Comparison:
        """The same comparison with the old sink, for checks that write nothing."""
        new, last = self.new, self.last
        if last is not None:
            new = replace(new, sink=last.sink, sink_options=last.sink_options)
        if new.sink == MEMORY_SINK:  # Spark refuses it for what it would write
            new = replace(new, sink=_NO_SINK)
            last = None if last is None else replace(last, sink=_NO_SINK)
        return replace(self, new=new, last=last, sink_batch=None)

    @property
    def new_checkpoint(self) -> str:
        """The place for the new checkpoint: the one that the code names, if it is free."""
        if self.code_checkpoint is not None and self.code_checkpoint_is_free:
            return self.code_checkpoint
        return f"{self.checkpoint.path.rstrip('/')}-new"

    @cached_property
    def held_sources(self) -> tuple[HeldSource, ...]:
        """The checkpoint's sources, with what the last start says about each."""
        positions = self.checkpoint.sources
        noted = self.last.sources if self.last is not None else ()
        by_name = self.knows_names()
        # In version 2 lines have no order, and a source without an offset has no line.
        known = self.named_sources() or len(noted) == len(positions)
        numbers = {
            (one.name if by_name else str(at)): at for at, one in enumerate(noted if known else ())
        }
        found = []
        for at, one in enumerate(positions):
            number = numbers.get(one.id)
            outline = None if number is None else noted[number]
            plan = at if number is None else number
            said = one.id in self.said_kinds
            found.append(HeldSource(one, outline, self.seen.get(at), by_name, plan, said))
        return tuple(found)

    @cached_property
    def sources(self) -> SourceMatching:
        """The matching of the new code's sources to the checkpoint's sources."""
        return match_sources(self.held_sources, self.new.sources, self.tables, self.told_sources)

    @cached_property
    def aligned(self) -> Comparison:
        """The comparison as if the checkpoint had the new code's sources, in their order.

        A new source has no offset there, and a removed source is left out. Branches of the plans
        that read only such sources are left out too.
        """
        matching = self.sources
        if matching.is_same or matching.unclear:
            return self
        latest, entry = self.checkpoint.latest_batch, self.checkpoint.latest_entry
        assert latest is not None
        assert entry is not None
        held = self.held_sources
        ids = {
            at: held[old].position.id for at, old in enumerate(matching.pairs) if old is not None
        }
        offsets = tuple(
            (str(at), entry.of(ids[at]) if at in ids else None) for at in range(len(matching.pairs))
        )
        checkpoint = replace(
            self.checkpoint,
            offsets={**self.checkpoint.offsets, latest: replace(entry, offsets=offsets)},
            initial=_renamed(self.checkpoint.initial, ids),
            said_kinds=_renamed(self.checkpoint.said_kinds, ids),
            disputed=_renamed(self.checkpoint.disputed, ids),
        )
        numbers = {old: at for at, old in enumerate(matching.pairs) if old is not None}
        return replace(
            self,
            checkpoint=checkpoint,
            last=self._aligned_start(matching),
            new=replace(self.new, tree=without_branches(self.new.tree, matching.added)),
            seen={now: self.seen[old] for old, now in numbers.items() if old in self.seen},
            told_sources={at: at for at in ids},
        )

    @property
    def kept_numbers(self) -> dict[int, int]:
        """Number of a kept source in the old code's plan → its number in the new code's plan."""
        pairs = enumerate(self.sources.pairs)
        return {self.held_sources[old].number: at for at, old in pairs if old is not None}

    def _aligned_start(self, matching: SourceMatching) -> LastStart | None:
        last = self.last
        if last is None:
            return None
        noted = [one.noted for one in self.held_sources]
        sources = tuple(
            (noted[old] if old is not None else None) or now
            for old, now in zip(matching.pairs, self.new.sources, strict=True)
        )
        gone = {self.held_sources[old].number for old in matching.removed}
        tree = last.tree and without_branches(last.tree, gone, self.kept_numbers)
        return replace(last, sources=sources if last.sources else (), tree=tree)

    @property
    def planned_by(self) -> Version | None:
        """The Spark that planned the newest batch, if anything shows it."""
        return planned_by(self.checkpoint, self.last)

    def noted_sources(self) -> Iterator[tuple[int, SourceOutline, SourceOutline]]:
        """Yield (number, at the last start, in the new code) of each source; none if the counts
        differ.
        """
        if self.last is not None and len(self.last.sources) == len(self.new.sources):
            for at, pair in enumerate(zip(self.last.sources, self.new.sources, strict=True)):
                yield at, *pair

    def pinned_and_chosen(self, key: str) -> tuple[str, str] | None:
        """Return a setting's values in a stateful checkpoint and in the session, if they differ."""
        pinned, chosen = self.checkpoint.conf.get(key), self.new.conf.get(key)
        if not (self.is_stateful and pinned and chosen) or pinned == chosen:
            return None
        return pinned, chosen

    @property
    def has_plans(self) -> bool:
        """Whether both plans are known, so that meanings can be compared."""
        return self.last is not None and self.last.tree is not None

    @property
    def not_compared(self) -> tuple[str, ...]:
        """What neither the checkpoint nor a note of its last start shows."""
        if self.has_plans:
            return ()
        if not self.is_stateful:
            return _UNTOLD
        return (*_UNTOLD, "what its keys and aggregates are made of", "join types and conditions")

    @cached_property
    def differences(self) -> tuple[PlanDifference, ...]:
        """The differences between the plan of the last start and the new plan; none without a
        note.
        """
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
            # Spark versions write some plans in different ways, so the cause is not known.
            feeds = next((one.feeds for one in found if one.feeds is not None), None)
            what = (
                f"The plans of Spark {before} and {now} differ, and cannot be compared exactly. "
                "With --old OLD.py, `check` and `migrate` let one Spark draw both."
            )
            return (
                PlanDifference(
                    DifferenceKind.ROWS if feeds else DifferenceKind.OUTPUT, what, "the plan", feeds
                ),
            )
        return found

    @property
    def is_renamed_only(self) -> bool:
        """Both plans are known, and whatever reaches a state is made as before.

        Columns of the state that have other names are then the same columns: Spark knows them
        by their place.
        """
        return self.has_plans and all(one.feeds is None for one in self.differences)

    def differences_of(self, *kinds: DifferenceKind) -> tuple[PlanDifference, ...]:
        return tuple(one for one in self.differences if one.kind in kinds)

    @property
    def is_stateful(self) -> bool:
        return bool(self.held)

    @property
    def same_operators(self) -> bool:
        """Whether the stateful operators are the same, in the same places, as far as is known."""
        return len(self.held) == len(self.new.operators) and all(
            is_same_kind(held, new) for held, new in self.pairs()
        )

    def pairs(self) -> Iterator[tuple[OperatorOutline, OperatorOutline]]:
        by_id = {one.operator: one for one in self.new.operators}
        for held in self.held:
            if held.operator in by_id:
                yield held, by_id[held.operator]

    def pairs_of(self, kinds: frozenset[str]) -> Iterator[tuple[OperatorOutline, OperatorOutline]]:
        """Yield the operators of these kinds that are the same before and after."""
        for held, new in self.pairs() if self.same_operators else self.matched():
            if operator_kind(new) in kinds:
                yield held, new

    def matched(self) -> Iterator[tuple[OperatorOutline, OperatorOutline]]:
        """Yield operators matched by kind and order, as `migrate` does if operators were added
        or removed.
        """
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
        """Whether Spark does not compare the schemas of this operator's state."""
        if self.new.conf.get(SCHEMA_CHECK, "true").lower() == "false":
            return True
        return self.is_moved(operator)

    def is_moved(self, operator: int) -> bool:
        """Whether the operator's metadata names schema files in another place."""
        metadata = self.checkpoint.operators.get(operator)
        if metadata is None or not metadata.stores:
            return False
        here = [plain_path(place) + "/" for place in (self.checkpoint.path, *self.places)]
        paths = [plain_path(path) for store in metadata.stores for path in store.schema_paths]
        return any(not path.startswith(tuple(here)) for path in paths)

    def named_sources(self) -> bool:
        """Whether the offset log has version 2: sources are known by name, not only by place."""
        return self.checkpoint.offset_log_version == 2

    def names_are_new(self) -> bool:
        """Whether the code names its sources, but the checkpoint knows them by place."""
        return not self.knows_names() and any(one.name is not None for one in self.new.sources)

    def knows_names(self) -> bool:
        """Whether the names are the code's own; in version 2 places may be names as well."""
        pinned = self.checkpoint.conf.get(SOURCE_EVOLUTION, "").lower() == "true"
        ids = [one.id for one in self.checkpoint.sources]
        return self.named_sources() and (pinned or not all(one.isdecimal() for one in ids))


_Of = TypeVar("_Of")


def _renamed(found: Mapping[str, _Of], ids: Mapping[int, str]) -> dict[str, _Of]:
    return {str(at): found[old] for at, old in ids.items() if old in found}


def operator_kind(operator: OperatorOutline) -> str:
    """Return the operator's name; before Spark 4.0 there were none, but a join shows by its
    stores.
    """
    if operator.name is not None:
        return operator.name
    return "symmetricHashJoin" if JOIN_STORES[0] in operator.stores else "stateStoreSave"


def is_same_kind(held: OperatorOutline, new: OperatorOutline) -> bool:
    if held.name is None or new.name is None:
        return (JOIN_STORES[0] in held.stores) == (JOIN_STORES[0] in new.stores)
    return held.name == new.name or {held.name, new.name} <= names_of(kinds.AGGREGATION)


def families(
    held: OperatorOutline, new: OperatorOutline
) -> Iterator[tuple[str, FamilyOutline, FamilyOutline]]:
    """Yield the stores and column families that both have, by name."""
    for store, before in held.stores.items():
        after = {one.name: one for one in new.stores.get(store, ())}
        for family in before:
            if family.name in after:
                name = store if family.name == "default" else family.name
                yield name, family, after[family.name]


def refuses_other_files(source: SourceOutline, before: SourceOutline | None) -> bool:
    """Whether a file source fails because the last batch's files are not below its new folder."""
    path, earlier = source.place or "", (before.place if before else None) or ""
    if source.kind not in FILE_SOURCES or any(sign in path for sign in "*?[{"):
        return False
    inside = plain_path(earlier) + "/"
    return not inside.startswith(plain_path(path).rstrip("/") + "/")


def option_changes(
    before: Mapping[str, str], after: Mapping[str, str]
) -> list[tuple[str, str | None, str | None]]:
    """Return the options that changed. Hidden values are compared by their digests."""
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
