"""Describes each file of a DStreams folder, and whether a recovery reads it."""

from __future__ import annotations

from floodmark.checkpoint.dstreams.batches import newest_state
from floodmark.checkpoint.dstreams.folder import (
    RECEIVED_DATA,
    RECEIVED_METADATA,
    DStreamsCheckpoint,
)
from floodmark.checkpoint.model import Checkpoint
from floodmark.fleet.told_files import Reads, ToldFile


class DStreamsFiles:
    """Describes one path after another."""

    def __init__(self, checkpoint: Checkpoint, found: DStreamsCheckpoint) -> None:
        self._found = found
        self._graphs = {one.path: one for one in found.graph_files}
        self._unreadable = {one.path for one in checkpoint.unreadable}
        self._rdds = {rdd.path: rdd for rdd in found.rdds}
        self._temporary = frozenset(found.temporary)
        states = (newest_state(found, at) for at in range(len(found.streams)))
        self._newest = {state[1] for state in states if state is not None}

    def tell(self, path: str) -> ToldFile:
        if path in self._temporary:
            return "A write that never finished.", Reads.NO, "Spark ignores its name."
        if path in self._graphs:
            return self._graph(path)
        folder = path.rpartition("/")[0]
        if folder in self._rdds:
            return self._state(folder)
        top = path.partition("/")[0]
        if top in (RECEIVED_DATA, RECEIVED_METADATA):
            return (
                "What receivers had taken before it was processed.",
                Reads.MAYBE,
                "A recovery reads what its pending batches still need.",
            )
        return "Nothing that Spark writes here.", Reads.NO, "Spark does not know this name."

    def _graph(self, path: str) -> ToldFile:
        what = "The whole application: code, pending batches, what each stream remembers."
        if self._graphs[path].is_backup:
            what = "What its file held before it was written again."
        if path in self._unreadable:
            return what, Reads.MAYBE, "It cannot be read: Spark goes on to an older one."
        if path == self._found.restart_file:
            return what, Reads.YES, "The newest that can be read: a recovery takes it."
        if path == self._found.fall_back_file:
            return what, Reads.MAYBE, "If the newest one cannot be read."
        return what, Reads.NO, "Older: only if those after it cannot be read."

    def _state(self, folder: str) -> ToldFile:
        rdd = self._rdds[folder]
        if rdd.stream is None:
            what = "A state that the application no longer names."
            return what, Reads.NO, "A run before this one has left it, or it is about to go."
        what = f"The state of stream {rdd.stream}, with its partitioner."
        if folder in self._newest:
            return what, Reads.YES, "The newest state that is whole: a recovery begins with it."
        return what, Reads.MAYBE, "The application names it; a later state holds more."
