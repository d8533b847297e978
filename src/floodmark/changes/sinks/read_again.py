"""Says what sinks get when a stream goes back: records come again, or batches are skipped."""

from __future__ import annotations

from dataclasses import dataclass, replace

from floodmark.changes.plan import Consequence
from floodmark.changes.sinks import (
    DELTA,
    FILES,
    REST,
    Consequences,
    Sink,
    batches_words,
    chosen,
    failing,
    or_replaced,
)
from floodmark.changes.sources.out_of_reach import LOSES, REPEATS, SKIPS


@dataclass(frozen=True)
class Again:
    """Batches before which a checkpoint goes back, and whose numbers it uses again."""

    after: int
    until: int | None
    """The last batch that was planned; None: it is unknown whether there was one."""
    trimmed: bool = False
    """True where the file sink's log goes back with the checkpoint."""
    kept_id: bool = False
    moved: bool = False
    """True where given offsets replace the batch's own."""
    in_flight: int | None = None
    """The batch that is planned, and may be missing in the sink."""
    stateful: bool = False
    other_query: str | None = None
    """The query that has replaced this one, and has read on from there."""
    left_at: int = -1
    """The last batch in the file sink's log, if an earlier change has not taken it back."""

    @property
    def range(self) -> tuple[int, int] | None:
        if self.until is None or self.until <= self.after:
            return None
        return self.after + 1, self.until


def reads_again(again: Again, sink: Sink | None) -> Consequences:
    """Return the consequences of going back to an earlier position, with a new or the old id."""
    spent = again.range
    what = f"the records of {batches_words(*spent)}" if spent else ""
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
    else:
        delta = or_replaced(delta, sink)
    return chosen(sink, (delta, _file_sink(again, sink), repeats))


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
            f"{batches_words(*spent)} twice"
        )
    if again.moved:
        words = f"{words}; it gets the records of all offsets that are given back a second time"
    return Consequence(FILES, words, again.moved)


def _skips(
    again: Again, kind: str, spent: tuple[int, int], reason: str, sink: Sink | None
) -> Consequence:
    words = (
        f"SKIPS new batches up to {spent[1]}, whatever is in them{reason}; gets records of "
        f"{batches_words(*spent)} a second time where they now come under later numbers"
    )
    skips = Consequence(kind, words, True, skips=spent)
    return failing(skips, sink, spent[1] + 1) if again.stateful else skips


def restored(again: Again, sink: Sink | None) -> Consequences:
    """Return the consequences of a restore, each with the name by which it must be accepted.

    A user who restores a checkpoint wants it as it was, without records that come twice.
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
    else:
        delta = or_replaced(delta, sink)
    files = Consequence(
        FILES,
        f"{since}, it {skips}, unless its log is trimmed too (--sink FOLDER) or its output folder "
        "is new",
        True,
        certain=False,
        accept=None if again.kept_id else SKIPS,
    )
    if again.stateful:
        files = failing(files, sink, None)
        delta = failing(delta, sink, None) if again.kept_id else delta
    rest = replace(twice, accept=None) if again.kept_id else twice
    return chosen(sink, (delta, files, rest))


def _to_accept(item: Consequence) -> Consequence:
    name = LOSES if item.lost else REPEATS if item.loses_or_repeats else None
    return replace(item, accept=SKIPS if item.skips else name)


def trimmed_too_far(after: int, planned: int, until: int) -> Consequence:
    """Return the consequence of a file sink's log with batches of another checkpoint."""
    words = (
        f"its log has batches up to {until}, and this checkpoint has planned none after {planned}: "
        f"where another query wrote them, its output after batch {after} goes out of the log, and "
        "is not written again"
    )
    return Consequence(FILES, words, True, lost=(after + 1, until), certain=False, accept=LOSES)


def lost_output(first: int, last: int) -> Consequence:
    """Return the consequence of a file sink's log that ends before the stream's position."""
    return Consequence(
        FILES,
        f"its log ends before batch {first}: no reader sees the output of "
        f"{batches_words(first, last)}, and it is not written again",
        True,
        lost=(first, last),
        accept=LOSES,
    )
