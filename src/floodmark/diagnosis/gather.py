"""Gathers the doctor's evidence: every log entry, the small files, and which of them fail."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.checkpoint.dstreams.folder import graph_files
from floodmark.checkpoint.evidence import Evidence, Fault
from floodmark.checkpoint.layout import side_file
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.checkpoint.source_kinds import with_said_kinds
from floodmark.diagnosis.facts import Gathering, KeptFiles
from floodmark.diagnosis.logs import gather_copies, gather_logs, gather_sources, gather_starts
from floodmark.diagnosis.store import (
    gather_checksums,
    gather_codecs,
    gather_lineages,
    gather_operators,
    gather_snapshots,
)
from floodmark.errors import (
    FloodmarkError,
    WrongUse,
)
from floodmark.storage.files import Files
from floodmark.storage.load import Entries, load, load_glance


def glance(files: Files) -> Evidence:
    """Return the evidence of a listing and a few small files, for scans of very many
    checkpoints.
    """
    kept = KeptFiles(files)
    found = Gathering(kept, load_glance(kept))
    if found.checkpoint.kind is Kind.DSTREAMS:
        _passed_over(found)
    elif found.checkpoint.complete:
        gather_logs(found)
        gather_sources(found, names_only=True)
        gather_operators(found)
    return found.evidence(False)


def gather(
    files: Files, share: float | None = None, said: Mapping[str, str] | None = None
) -> Evidence:
    """Return the evidence on one checkpoint.

    `share`: how much of the state to read, 1.0 for all. `said`: the kinds of sources that the user
    names.
    """
    kept = KeptFiles(files)
    checkpoint = load(kept, Entries.ALL)
    if said:
        checkpoint = with_said_kinds(checkpoint, said)
    found = Gathering(kept, checkpoint)
    if checkpoint.kind is Kind.DSTREAMS:
        _dstreams(found)
    else:
        gather_logs(found)
        gather_sources(found)
        gather_operators(found)
        gather_lineages(found)
        gather_snapshots(found)
        gather_checksums(found)
        gather_starts(found)
        gather_codecs(found)
    if share is not None and checkpoint.kind is Kind.DSTREAMS:
        from floodmark.diagnosis.saved_rdds import read_saved_rdds

        read_saved_rdds(found)
    elif share is not None:
        from floodmark.diagnosis.state_files import read_state

        read_state(found, share)
    _side_files(found)
    gather_copies(found)
    return found.evidence(share is not None)


def noted_starts(files: Files, checkpoint: Checkpoint, newest: int) -> Evidence:
    """Return a checkpoint that was read already, with only the newest notes of starts."""
    found = Gathering(KeptFiles(files), checkpoint)
    gather_starts(found, newest)
    return found.evidence(False)


def _side_files(found: Gathering) -> None:
    sides = {
        side: path for path in found.files.contents if (side := side_file(path)) in found.sizes
    }
    for side, data in found.read(sides).items():
        found.check_side(sides[side], found.files.contents[sides[side]], data)


def _passed_over(found: Gathering) -> None:
    """Note the DStreams files that Spark skips before it finds one that it can read."""
    for item in found.checkpoint.unreadable:
        found.faults[item.path] = Fault(item.reason, empty=found.sizes.get(item.path) == 0)


def _dstreams(found: Gathering) -> None:
    """Read every file that Spark may fall back to; those before the first sound one are known."""
    from floodmark.storage.dstreams import MOST_READ, read_graph_file

    graphs = [file.path for file in graph_files(found.checkpoint.files)]
    for path in graphs[-MOST_READ:]:
        try:
            read_graph_file(found.files, path)
        except WrongUse:
            raise
        except FloodmarkError as error:
            found.fail(path, error)
