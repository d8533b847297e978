"""What a change means for each kind of sink: in words, and as ranges of batches.

A sink that remembers (query id, batch) takes each batch once: Delta by its txn entries,
txnAppId and a ledger likewise, Iceberg by its snapshots as long as they are not expired. The file
sink remembers the batch number alone, in the `_spark_metadata` of its output. Kafka, foreach and
the rest remember nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from floodmark.changes.plan import Consequence
from floodmark.changes.sources.out_of_reach import LOSES, REPEATS, SKIPS
from floodmark.connectors.sinks import forgets, goes_by_number, goes_by_query

DELTA = "Delta, Iceberg, or a ledger of (query, batch)"
FILES = "files (csv, json, parquet, orc, text)"
REST = "Kafka, foreach and others that remember nothing"
EVERY = "every sink"
Consequences = tuple[Consequence, ...]
_REPLACED = "is in complete mode: each batch replaces the content, so nothing is stored twice"


@dataclass(frozen=True)
class Sink:
    """What floodmark's own notes say of the query's sink; Spark keeps nothing of it."""

    kind: str
    path: str | None = None
    complete: bool = False

    @property
    def replaces(self) -> bool:
        """In complete mode a Delta sink replaces its content with each batch."""
        return goes_by_query(self.kind) and self.complete


def sink_of(note: Mapping[str, Any] | None) -> Sink | None:
    if not note or not isinstance(note.get("sink"), str):
        return None
    options = note.get("sink_options")
    path = options.get("path") if isinstance(options, dict) else None
    complete = str(note.get("output_mode", "")).lower() == "complete"
    return Sink(note["sink"], path if isinstance(path, str) else None, complete)


def _kinds(sink: Sink | None) -> tuple[str, ...]:
    if sink is None:
        return (DELTA, FILES, REST)
    if goes_by_number(sink.kind):
        return (FILES,)
    if sink.kind == "foreachBatch":
        # Nobody knows what it does with a batch; it has no log of the file sink.
        return (DELTA, REST)
    return (DELTA,) if goes_by_query(sink.kind) else (REST,)


def _chosen(sink: Sink | None, every: Consequences) -> Consequences:
    kinds = _kinds(sink)
    return tuple(_said_of(sink, item) for item in every if item.sink in kinds)


def _said_of(sink: Sink | None, item: Consequence) -> Consequence:
    """An Iceberg table forgets the batches whose snapshots are expired."""
    if item.sink != DELTA or not (sink is None or forgets(sink.kind)):
        return item
    if not item.skips and " skips " not in f" {item.words} ":
        return item
    who = "Iceberg" if sink is None else "it"
    words = f"{item.words}; {who} has forgotten a batch whose snapshot is expired, and writes it"
    return replace(item, words=words)


def goes_on(in_flight: int | None, sink: Sink | None) -> Consequences:
    """Same id, numbers go on, and the in-flight batch is run again over its range."""
    if in_flight is None:
        return (Consequence(EVERY, "goes on with the next batch: no batch is repeated"),)
    return _chosen(
        sink,
        (
            Consequence(
                DELTA, f"skips batch {in_flight} if it already stored it, and writes it if not"
            ),
            Consequence(FILES, f"skips batch {in_flight} if its log has it, and writes it if not"),
            _maybe_again(
                REST, in_flight, f"may get batch {in_flight} a second time, as after any restart"
            ),
        ),
    )


def other_copies(
    newest: int | None, top: int, in_flight: int | None, sink: Sink | None, stateful: bool
) -> Consequences:
    """What sinks have of another copy of the checkpoint, under the numbers that come.

    `newest` is the last batch in the sink's own log; None: nobody has asked it. `top` is the last
    that this checkpoint has planned.
    """
    if newest is None:
        return (
            Consequence(
                EVERY,
                "was NOT ASKED whether another copy of this checkpoint has run on (after an "
                "upgrade, a copy or a restore): if one has, sinks that remember batches skip the "
                "coming ones, and others get their records a second time",
                certain=False,
            ),
        )
    if newest <= top:
        return ()
    kind = FILES if sink is not None and goes_by_number(sink.kind) else DELTA
    words = (
        f"has batches up to {newest}, and this checkpoint has planned none after {top}, so another "
        f"copy of it ran on: SKIPS new batches up to {newest}, whatever is in them"
    )
    first = top + 1 if in_flight is None else top
    skips = Consequence(kind, words, True, skips=(first, newest), accept=SKIPS)
    return (_failing(skips, sink, newest + 1) if stateful else skips,)


def with_copies(copies: Consequences, told: Consequences) -> Consequences:
    """What is known of another copy comes first, and what nobody asked last."""
    return (*copies, *told) if any(one.skips for one in copies) else (*told, *copies)


def _maybe_again(kind: str, batch: int, words: str) -> Consequence:
    return Consequence(kind, words, True, again=(batch, batch), certain=False)


def new_identity(in_flight: int | None, sink: Sink | None) -> Consequences:
    if in_flight is None:
        return _chosen(
            sink,
            (
                Consequence(DELTA, "does not know the new id: gets nothing twice"),
                Consequence(FILES, "remembers numbers, not ids: nothing changes for it"),
                Consequence(REST, "gets nothing twice"),
            ),
        )
    twice = f"may get batch {in_flight} twice"
    return _chosen(
        sink,
        (
            _maybe_again(
                DELTA, in_flight, f"does not know the new id: {twice}, unless the sink is new"
            ),
            Consequence(
                FILES,
                f"remembers numbers, not ids: skips batch {in_flight} if its log has it",
            ),
            _maybe_again(REST, in_flight, twice),
        ),
    )


@dataclass(frozen=True)
class Renumbering:
    """A stream that counts its batches from the beginning again."""

    first: int
    """The first number that it uses."""
    highest: int
    """The highest number that a sink may have seen."""
    after: int | None
    """The batch after whose end it begins; None: at the very beginning."""
    in_flight: int | None
    """The batch of which nobody knows whether the sink has it."""
    new_id: bool
    stateful: bool = False

    @property
    def again(self) -> tuple[int, int] | None:
        after = -1 if self.after is None else self.after
        return (after + 1, self.highest) if self.highest > after else None

    @property
    def certain(self) -> bool:
        return self.again != (self.in_flight, self.in_flight)


def restarted_numbers(restart: Renumbering, sink: Sink | None) -> Consequences:
    again = restart.again
    verb = "gets" if restart.certain else "may get"
    twice = (
        f"{verb} the records of {_batches(*again)} a second time, unless the sink is new"
        if again
        else "gets nothing twice"
    )
    repeats = Consequence("", twice, bool(again), again=again, certain=restart.certain)
    skips = (restart.first, restart.highest)
    drops = Consequence("", "", True, skips=skips, certain=restart.in_flight is None)
    upto = f"DROPS every batch up to {restart.highest} silently, unless"
    next_batch = restart.highest + 1
    delta = replace(
        repeats, sink=DELTA, words=f"stores the batches, because the id is new: {twice}"
    )
    if not restart.new_id:
        words = f"{upto} the sink is new: it has those numbers of this id"
        delta = replace(drops, sink=DELTA, words=words)
        if restart.stateful:
            delta = _failing(delta, sink, next_batch)
    elif sink is not None and sink.replaces:
        delta = Consequence(DELTA, _REPLACED)
    files = replace(drops, sink=FILES, words=f"{upto} its output folder is new")
    if restart.stateful:
        files = _failing(files, sink, next_batch)
    rest = replace(repeats, sink=REST, words=f"does not look at numbers: {twice}")
    return _chosen(sink, (delta, files, rest))


@dataclass(frozen=True)
class Again:
    """Batches that a checkpoint goes back behind, under numbers that it uses again."""

    after: int
    until: int | None
    """The last batch that was planned; None: nothing says whether there was one."""
    trimmed: bool = False
    """The file sink's log is taken back with the checkpoint."""
    kept_id: bool = False
    moved: bool = False
    """Given offsets stand in for the batch's own."""
    in_flight: int | None = None
    """The batch that is planned, and not known to be in the sink."""
    stateful: bool = False
    other_query: str | None = None
    """A query that stands in the checkpoint's place, and has read on from there."""
    left_at: int = -1
    """The last batch in the file sink's log, where an earlier change has not taken it back."""

    @property
    def range(self) -> tuple[int, int] | None:
        if self.until is None or self.until <= self.after:
            return None
        return self.after + 1, self.until


def reads_again(again: Again, sink: Sink | None) -> Consequences:
    """Back to an earlier place, under a new id or under the old one."""
    spent = again.range
    what = f"the records of {_batches(*spent)}" if spent else ""
    if again.moved:
        what = f"{what} and of" if what else "the records of"
        what += " all offsets that are given back"
    repeats = Consequence(REST, "gets nothing twice")
    if again.other_query is not None:
        what = f"{what} and " if what else ""
        what += _run_since(again.other_query)
    if what:
        twice = f"gets {what} a second time, unless you take them out of it"
        repeats = Consequence(REST, twice, True, again=spent)
    if again.other_query is not None:
        repeats = replace(repeats, again=None, certain=False)
    delta = replace(repeats, sink=DELTA)
    if again.kept_id and spent:
        delta = _skips(again, DELTA, spent, ": the id is kept, and it has those numbers", sink)
    elif sink is not None and sink.replaces:
        delta = Consequence(DELTA, _REPLACED)
    return _chosen(sink, (delta, _file_sink(again, sink), repeats))


def _run_since(query: str) -> str:
    return f"the records of all batches that query {query} has run since then"


def _file_sink(again: Again, sink: Sink | None) -> Consequence:
    spent = again.range
    if spent and not again.trimmed:
        unless = ", unless its log is trimmed too (--sink FOLDER) or its output folder is new"
        return _skips(again, FILES, (spent[0], max(spent[1], again.left_at)), unless, sink)
    words = "its log has none of the numbers that come"
    if spent:
        words = (
            "its log is trimmed with it: readers of the log see no record of "
            f"{_batches(*spent)} twice"
        )
    if again.moved:
        words = f"{words}; it gets the records of all offsets that are given back a second time"
    return Consequence(FILES, words, again.moved)


def _skips(
    again: Again, kind: str, spent: tuple[int, int], reason: str, sink: Sink | None
) -> Consequence:
    words = (
        f"SKIPS new batches up to {spent[1]}, whatever is in them{reason}; gets records of "
        f"{_batches(*spent)} a second time where they now come under later numbers"
    )
    skips = Consequence(kind, words, True, skips=spent)
    return _failing(skips, sink, spent[1] + 1) if again.stateful else skips


def _failing(skips: Consequence, sink: Sink | None, batch: int | None) -> Consequence:
    """A sink of Spark does not compute a batch that it skips; `once` does, for its state.

    `batch` is the first that is not skipped, and wants that state; None: it is not known.
    """
    if sink is not None and (sink.kind == "foreachBatch" or forgets(sink.kind)):
        return skips  # Iceberg computes the batch, and leaves out its commit alone
    whose = ' of format("delta")' if skips.sink == DELTA and sink is None else ""
    at = "" if batch is None else f" at batch {batch}"
    words = (
        f"{skips.words}; then a query{whose} fails{at}, because the state of skipped batches "
        "is never computed"
    )
    return replace(skips, words=words, fails_at=batch)


def restored(again: Again, sink: Sink | None) -> Consequences:
    """As `reads_again`, each with the name by which it has to be accepted.

    Who restores a checkpoint asks for it as it was, not for records to come twice.
    """
    if again.until is not None:
        return tuple(_to_accept(item) for item in reads_again(again, sink))
    since = "if the query ran on after the snapshot"
    flight = again.in_flight
    also = "" if flight is None else f"; it may get batch {flight}, in flight then, twice, too"
    if again.other_query is not None:
        also += f"; so it does with {_run_since(again.other_query)}"
    twice = Consequence(
        REST,
        f"{since}, it gets the records of those batches a second time{also}",
        True,
        certain=False,
        accept=REPEATS,
    )
    skips = "SKIPS new batches of the same numbers, whatever is in them"
    delta = replace(twice, sink=DELTA)
    if again.kept_id:
        delta = Consequence(DELTA, f"{since}, it {skips}: the id is kept", True, certain=False)
    elif sink is not None and sink.replaces:
        delta = Consequence(DELTA, _REPLACED)
    files = Consequence(
        FILES,
        f"{since}, it {skips}, unless its log is trimmed too (--sink FOLDER) or its output folder "
        "is new",
        True,
        certain=False,
        accept=None if again.kept_id else SKIPS,
    )
    if again.stateful:
        files = _failing(files, sink, None)
        delta = _failing(delta, sink, None) if again.kept_id else delta
    rest = replace(twice, accept=None) if again.kept_id else twice
    return _chosen(sink, (delta, files, rest))


def _to_accept(item: Consequence) -> Consequence:
    name = LOSES if item.lost else REPEATS if item.loses_or_repeats else None
    return replace(item, accept=SKIPS if item.skips else name)


def by_time() -> Consequence:
    """Another cluster's offsets, found by the times of records."""
    words = "may get records a second time whose time is the one at which the new cluster starts"
    return Consequence(EVERY, words, True, certain=False)


def never_read(words: str) -> Consequence:
    """Records that given offsets leave out."""
    return Consequence("every sink", f"never gets {words}", True, accept=SKIPS)


def trimmed_too_far(after: int, planned: int, until: int) -> Consequence:
    """The file sink's log has batches that this checkpoint never planned."""
    words = (
        f"its log has batches up to {until}, and this checkpoint has planned none after {planned}: "
        f"where another query wrote them, its output after batch {after} goes out of the log, and "
        "is not written again"
    )
    return Consequence(FILES, words, True, lost=(after + 1, until), certain=False, accept=LOSES)


def taken_back_alone(verb: str, first: int, last: int) -> Consequence:
    """The checkpoint went back earlier, and the file sink's log did not."""
    words = (
        f"an earlier `{verb}` took this checkpoint back from batch {last}, and not the sink's log: "
        f"SKIPS new batches up to {last}, whatever is in them, unless its log was taken back since "
        "or its output folder is new"
    )
    return Consequence(FILES, words, True, skips=(first, last), certain=False)


def lost_output(first: int, last: int) -> Consequence:
    """The file sink's log ends before the batch that the stream goes on after."""
    return Consequence(
        FILES,
        f"its log ends before batch {first}: no reader sees the output of {_batches(first, last)}, "
        "and it is not written again",
        True,
        lost=(first, last),
        accept=LOSES,
    )


def _batches(first: int, last: int) -> str:
    return f"batches {first} to {last}" if last > first else f"batch {first}"


def again(after: int, until: int, sink: Sink | None) -> Consequences:
    """Earlier batches read again under numbers that no sink has seen."""
    words = f"gets the records of {_batches(after + 1, until)} a second time"
    return _every(sink, Consequence("", words, True, again=(after + 1, until)))


def dropped_in_flight(batch: int, sink: Sink | None) -> Consequences:
    words = f"gets the records of batch {batch} again, where it has them already"
    # Spark reads this sink's log number by number, and ends at one that is missing.
    hole = (
        f"{words}; where it has not, nobody can read its folder until its log has an entry for "
        f"that number: printf v1 > FOLDER/_spark_metadata/{batch}"
    )
    found = _every(sink, _maybe_again("", batch, words))
    return tuple(replace(one, words=hole) if one.sink == FILES else one for one in found)


def _every(sink: Sink | None, item: Consequence) -> Consequences:
    found = _chosen(sink, tuple(replace(item, sink=kind) for kind in (DELTA, FILES, REST)))
    if sink is None or not sink.replaces:
        return found
    return tuple(Consequence(DELTA, _REPLACED) if one.sink == DELTA else one for one in found)
