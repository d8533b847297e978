"""Numbers that a sink may have seen, used again: it must not take the new batches for the old."""

from __future__ import annotations

from floodmark.changes.mends.patient import REPEATS, Patient
from floodmark.changes.mends.spans import in_words, repeats_of
from floodmark.changes.named import not_named
from floodmark.changes.origin import new_query_id
from floodmark.changes.sinklog import trim_sink_log
from floodmark.checkpoint.layout import METADATA
from floodmark.checkpoint.query import new_metadata, render_metadata


def new_number_space(patient: Patient, first: int, spent: list[int]) -> bool:
    """Batches from `first` on are planned anew, of which the sink may have those that are spent.

    False where a file sink's log cannot be taken back.
    """
    batch = first - 1
    names = f"batch {spent[0]}" + (f" to {spent[-1]}" if len(spent) > 1 else "")
    sink = patient.sink
    if sink.kind == "files" and sink.files is not None:
        trim = trim_sink_log(sink.files, batch)
        if trim.words:
            patient.note(f"Going back to batch {batch} is not possible: {trim.words}.")
            return False
        if trim.steps and not sink.named:
            unnamed = not_named(sink.place or "")
            patient.note(f"Going back to batch {batch} changes the sink's log, too. {unnamed}")
            return False
        patient.sink_steps = trim.steps
        patient.note(f"The file sink's log is taken back too: no reader of it sees {names} twice.")
        return True
    fresh = new_metadata(new_query_id())
    why = f"a new query id: a sink that has {names} would skip it, and its state with it"
    patient.write(METADATA, render_metadata(fresh), why)
    if sink.kind is None:
        patient.note(
            "If the sink writes files (csv, json, parquet, …), name its folder with --sink: it "
            f"skips batches up to {spent[-1]} unless its log is taken back as well."
        )
    if sink.complete:
        patient.note("The sink is in complete mode: each batch replaces what it has.")
        return True
    repeats = repeats_of(patient, batch, spent)
    patient.risk(
        REPEATS,
        f"{names[0].upper()}{names[1:]} is read again{in_words(repeats)}: a sink "
        "that has these records gets them a second time.",
        repeats,
    )
    return True
