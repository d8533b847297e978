"""Keeps a sink from taking new batches for old ones when numbers are used again."""

from __future__ import annotations

from floodmark.changes.carry.origin import fresh_identity
from floodmark.changes.carry.sink_log import trim_sink_log
from floodmark.changes.named_places import not_named
from floodmark.changes.repair.emitted import risk_repeats
from floodmark.changes.repair.working_copy import WorkingCopy
from floodmark.changes.sinks import batches_words
from floodmark.checkpoint.layout import METADATA
from floodmark.connectors.files.offset import FILE_SINKS


def use_numbers_again(work: WorkingCopy, first: int, spent: list[int]) -> bool:
    """Prepare to plan batches from `first` on again; the sink may have stored those in `spent`.

    Returns False where a file sink's log cannot be taken back.
    """
    batch = first - 1
    names = batches_words(spent[0], spent[-1])
    verb = "is" if spent[0] == spent[-1] else "are"
    sink = work.sink
    if sink.by_number and sink.files is not None:
        trim = trim_sink_log(sink.files, batch)
        if trim.words:
            work.note(f"Going back to batch {batch} is not possible: {trim.words}.")
            return False
        if trim.steps and not sink.named:
            unnamed = not_named(sink.place or "")
            work.note(f"Going back to batch {batch} changes the sink's log, too. {unnamed}")
            return False
        work.sink_steps = trim.steps
        work.note(f"The file sink's log is taken back too: no reader of it sees {names} twice.")
        return True
    why = f"a new query id: a sink that has {names} would skip it, and its state with it"
    work.write(METADATA, fresh_identity(), why)
    if sink.replaces:
        work.note("The Delta table is in complete mode: each batch replaces its content.")
        return True
    risk_repeats(
        work,
        f"{names[0].upper()}{names[1:]} {verb} read again",
        f"a sink that has these records gets them a second time.{_file_sink(work, spent[-1])}",
        batch,
        spent,
    )
    return True


def _file_sink(work: WorkingCopy, until: int) -> str:
    """Return a warning if the user named no sink: a file sink would lose records."""
    if work.sink.kind not in (None, *FILE_SINKS):
        return ""
    return (
        " A sink that writes files (csv, json, parquet, …) SKIPS every batch up to "
        f"{until}, whatever is in it, unless its log is taken back too: name its output folder "
        "with --sink FOLDER."
    )
