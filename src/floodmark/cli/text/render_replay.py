"""Prints the result of `floodmark replay` for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from floodmark.cli.text import count, render_state, style, table
from floodmark.screen import short

if TYPE_CHECKING:
    from floodmark.api.proving import Replay, ReplayedBatch

_CELL = 40
_WHOLE = "triggerExecution"


def text(found: Replay, of_key: bool = False) -> str:
    """Return the whole answer; `of_key` where only one key's rows are shown."""
    parts = [part for one in found.batches for part in _batch(found, one, of_key)]
    return "\n\n".join([*parts, *_notes(found)])


def _batch(found: Replay, one: ReplayedBatch, of_key: bool) -> Iterator[str]:
    yield style(f"{found.checkpoint}: batch {one.batch}, again with {found.application}", "bold")
    yield table(
        [
            *(
                (f"source {source.source}", source.kind, _rows(source.rows, "read"))
                for source in one.input
            ),
            ("output", "", _rows(one.output_rows, "put out")),
            (
                "state",
                "",
                f"{count(one.state.added, 'key')} added, {one.state.changed:,} changed, "
                f"{one.state.removed:,} removed",
            ),
            ("late", "", _rows(one.late_rows, "dropped")),
            ("time", "", _phases(one.phases)),
        ]
    )
    if one.rows:
        yield rows_table(one.rows)
        if one.output_rows > len(one.rows):
            more = one.output_rows - len(one.rows)
            yield (
                f"Only rows of the key are shown; --export DIR writes all {one.output_rows:,}."
                if of_key
                else f"… {more:,} more; --limit N shows more, --export DIR writes all."
            )
    for store in one.state_changes:
        if store.keys.differ:
            yield f"state {store.operator}, store {store.store}: {render_state.changes(store.keys)}"
    if one.exported is not None:
        yield f"Written to {one.exported}."
    yield _verdict(one)


def _rows(number: int | None, done: str) -> str:
    return "Spark did not tell" if number is None else f"{count(number, 'row')} {done}"


def _phases(phases: Mapping[str, int]) -> str:
    parts = sorted(phases.items(), key=lambda one: -one[1])
    told = ", ".join(f"{name} {ms:,}" for name, ms in parts if name != _WHOLE and ms)
    whole = phases.get(_WHOLE)
    return f"{whole:,} ms: {told}" if whole is not None else told or "Spark did not tell"


def _verdict(one: ReplayedBatch) -> str:
    if one.matches_checkpoint is None:
        return one.not_compared
    if one.matches_checkpoint:
        return style(
            f"The state after it equals what the checkpoint has for batch {one.batch}, key by key.",
            "green",
        )
    return "\n\n".join(
        [
            style(
                f"The state after it is not what the checkpoint has for batch {one.batch} "
                "(the checkpoint's value → the replay's):",
                "red",
            ),
            render_state.differences(one.differences),
        ]
    )


def _notes(found: Replay) -> Iterator[str]:
    if found.matches_checkpoint is False:
        yield (
            "The code is not the one that the last start noted, so it may compute something else."
            if found.same_code is False
            else "The same code over the same input gave another state: it is not deterministic "
            "(random numbers, the clock, an outside table, the order of rows), or it is not the "
            "code that ran."
        )
    if found.foreach_batch == "not-called":
        yield "The foreachBatch function was not called; --call-foreach-batch calls it."
    yield "Checkpoint and sink were not changed."


def rows_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows by column name, each cell on one line."""
    names = list(rows[0])
    lines = [[short(name, _CELL) for name in names]]
    lines += [[short(render_state.cell(row[name]), _CELL) for name in names] for row in rows]
    header, *body = table(lines).splitlines()
    return "\n".join([style(header, "bold"), *body])
