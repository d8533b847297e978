"""Says what a change means for each kind of sink, in words and in ranges of batches.

`read_again.py` does this for a stream that goes back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from floodmark.changes.plan import Consequence
from floodmark.changes.sinks import (
    DELTA,
    EVERY,
    FILES,
    REST,
    Consequences,
    Sink,
    batches_words,
    chosen,
    failing,
    for_every_sink,
    maybe_again,
    or_replaced,
)
from floodmark.changes.sources.out_of_reach import SKIPS
from floodmark.connectors.files.file_log import SINK_LOG
from floodmark.connectors.sink_memory import goes_by_number


def goes_on(in_flight: int | None, sink: Sink | None) -> Consequences:
    """Return what happens if id and numbers stay, and the in-flight batch runs again."""
    if in_flight is None:
        return (Consequence(EVERY, "goes on with the next batch: no batch is repeated"),)
    return chosen(
        sink,
        (
            Consequence(
                DELTA, f"skips batch {in_flight} if it already stored it, and writes it if not"
            ),
            Consequence(FILES, f"skips batch {in_flight} if its log has it, and writes it if not"),
            maybe_again(
                REST, in_flight, f"may get batch {in_flight} a second time, as after any restart"
            ),
        ),
    )


def other_copies(
    newest: int | None, top: int, in_flight: int | None, sink: Sink | None, stateful: bool
) -> Consequences:
    """Return what sinks have from another copy of the checkpoint, for the coming numbers.

    `newest` is the last batch in the sink's own log; None: nobody asked it. `top` is the last
    batch that this checkpoint has planned.
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
    return (failing(skips, sink, newest + 1) if stateful else skips,)


def with_copies(copies: Consequences, told: Consequences) -> Consequences:
    """Put what is known about another copy first, and what is unknown last."""
    return (*copies, *told) if any(one.skips for one in copies) else (*told, *copies)


def new_identity(in_flight: int | None, sink: Sink | None) -> Consequences:
    if in_flight is None:
        return chosen(
            sink,
            (
                Consequence(DELTA, "does not know the new id: gets nothing twice"),
                Consequence(FILES, "remembers numbers, not ids: nothing changes for it"),
                Consequence(REST, "gets nothing twice"),
            ),
        )
    twice = f"may get batch {in_flight} twice"
    return chosen(
        sink,
        (
            maybe_again(
                DELTA, in_flight, f"does not know the new id: {twice}, unless the sink is new"
            ),
            Consequence(
                FILES,
                f"remembers numbers, not ids: skips batch {in_flight} if its log has it",
            ),
            maybe_again(REST, in_flight, twice),
        ),
    )


@dataclass(frozen=True)
class Renumbering:
    """A stream that counts its batches from the beginning again."""

    first: int
    """The first number that the stream uses."""
    highest: int
    """The highest number that a sink may have seen."""
    after: int | None
    """The batch after which the stream begins; None: at the very beginning."""
    in_flight: int | None
    """The batch that may or may not be in the sink."""
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
        f"{verb} the records of {batches_words(*again)} a second time, unless the sink is new"
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
            delta = failing(delta, sink, next_batch)
    else:
        delta = or_replaced(delta, sink)
    files = replace(drops, sink=FILES, words=f"{upto} its output folder is new")
    if restart.stateful:
        files = failing(files, sink, next_batch)
    rest = replace(repeats, sink=REST, words=f"does not look at numbers: {twice}")
    return chosen(sink, (delta, files, rest))


def by_time() -> Consequence:
    """Return the consequence of another cluster's offsets that were found by record times."""
    words = "may get records a second time whose time is the one at which the new cluster starts"
    return Consequence(EVERY, words, True, certain=False)


def never_read(words: str) -> Consequence:
    """Return the consequence of records that given offsets leave out."""
    return Consequence("every sink", f"never gets {words}", True, accept=SKIPS)


def taken_back_alone(verb: str, first: int, last: int) -> Consequence:
    """Return the consequence of a checkpoint that went back earlier without the file sink's log."""
    words = (
        f"an earlier `{verb}` took this checkpoint back from batch {last}, and not the sink's log: "
        f"SKIPS new batches up to {last}, whatever is in them, unless its log was taken back since "
        "or its output folder is new"
    )
    return Consequence(FILES, words, True, skips=(first, last), certain=False)


def again(after: int, until: int, sink: Sink | None) -> Consequences:
    """Return the consequence of reading earlier batches again under unused numbers."""
    words = f"gets the records of {batches_words(after + 1, until)} a second time"
    return for_every_sink(sink, Consequence("", words, True, again=(after + 1, until)))


def dropped_in_flight(batch: int, sink: Sink | None) -> Consequences:
    words = f"gets the records of batch {batch} again, where it has them already"
    # Spark reads this sink's log number by number, and stops at a missing one.
    hole = (
        f"{words}; where it has not, nobody can read its folder until its log has an entry for "
        f"that number: printf v1 > FOLDER/{SINK_LOG}/{batch}"
    )
    found = for_every_sink(sink, maybe_again("", batch, words))
    return tuple(replace(one, words=hole) if one.sink == FILES else one for one in found)
