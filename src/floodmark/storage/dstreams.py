"""Loads a DStreams folder: the names of its files, and the newest sound file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from floodmark.checkpoint.dstreams.folder import (
    JVM,
    PYTHON,
    DStreamsCheckpoint,
    Graph,
    GraphFile,
    SavedRdd,
    graph_files,
    rdd_folder,
    received_logs,
    saved_rdds,
    temporary_files,
)
from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.model import Checkpoint, Kind, Unreadable
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.dstreams.graph import read_graph
from floodmark.dstreams.hash_partitioner import parts_of
from floodmark.errors import FloodmarkError, MalformedFile, WrongUse
from floodmark.storage.files import Files, Listing

MOST_READ = 20
"""Spark keeps ten files; a folder with thousands of broken ones is not read to its end."""


def load_dstreams(files: Files, listing: Listing) -> Checkpoint:
    """Load the newest file that can be read, as Spark's recovery does."""
    found = graph_files(listing.files)
    faults: dict[str, str] = dict(listing.unreadable)
    taken, graph = _newest_sound(files, list(reversed(found))[:MOST_READ], faults)
    summary = _summary(listing.files, found, taken, graph, faults)
    summary = replace(summary, rdds=tuple(_counted(files, rdd) for rdd in summary.rdds))
    unreadable = tuple(Unreadable(path, reason) for path, reason in faults.items())
    return Checkpoint(
        files.root,
        Kind.DSTREAMS,
        listing.files,
        listing.complete,
        unreadable=unreadable,
        dstreams=summary,
    )


def _counted(files: Files, rdd: SavedRdd) -> SavedRdd:
    """Check whether the last parts of a state that the application names exist as well."""
    if rdd.batch_time_ms is None or rdd.missing is not None:
        return rdd
    try:
        parts = parts_of(files.read(RelativePath(f"{rdd.path}/_partitioner")))
    except FloodmarkError:
        return rdd  # an RDD without a partitioner has none
    lacks = parts is not None and parts > rdd.partitions
    return replace(rdd, missing=rdd.partitions) if lacks else rdd


def _newest_sound(
    files: Files, newest_first: Sequence[GraphFile], faults: dict[str, str]
) -> tuple[str | None, Graph | None]:
    for file in newest_first:
        if file.path in faults:
            continue
        try:
            return file.path, read_graph_file(files, file.path)
        except WrongUse:
            raise
        except FloodmarkError as error:
            faults[file.path] = f"{error.what}: {error.why}" if error.why else error.what
    return None, None


def read_graph_file(files: Files, path: str) -> Graph:
    """Read a graph; raises WrongUse where a package is missing, as the file is not at fault."""
    try:
        return read_graph(files.read(RelativePath(path)))
    except ModuleNotFoundError as error:
        raise WrongUse(
            f"{path} is compressed, and {error.name} is not installed",
            "The base install leaves it out.",
            'Install it with: pip install "floodmark[state]"',
        ) from None
    except RecursionError:
        raise MalformedFile("its objects lie too deep") from None


def _summary(
    listed: tuple[FileInfo, ...],
    found: tuple[GraphFile, ...],
    taken: str | None,
    graph: Graph | None,
    faults: dict[str, str],
) -> DStreamsCheckpoint:
    order = [file.path for file in reversed(found)]
    after = order[order.index(taken) + 1 :] if taken else []
    summary = DStreamsCheckpoint(
        tuple(sorted({file.time_ms for file in found})),
        taken,
        next((path for path in after if path not in faults), None),
        None,
        None,
        None,
        None,
        saved_rdds(listed),
        graph_files=found,
        received=received_logs(listed),
        temporary=temporary_files(listed),
    )
    return summary if graph is None else with_graph(summary, graph)


def with_graph(summary: DStreamsCheckpoint, graph: Graph) -> DStreamsCheckpoint:
    intervals = [one.checkpoint_interval_ms for one in graph.streams if one.checkpoint_interval_ms]
    return replace(
        summary,
        batch_ms=graph.batch_ms,
        checkpoint_interval_ms=graph.checkpoint_interval_ms,
        state_interval_ms=min(intervals, default=None),
        pending_times=graph.pending_times,
        rdds=_with_batches(summary.rdds, graph),
        checkpoint_time_ms=graph.checkpoint_time_ms,
        zero_time_ms=graph.zero_time_ms,
        master=graph.master,
        app_name=graph.app_name,
        directory=graph.directory,
        jars=graph.jars,
        conf=graph.conf,
        codec=graph.codec,
        language=PYTHON if graph.is_python else JVM,
        streams=graph.streams,
    )


def _with_batches(rdds: tuple[SavedRdd, ...], graph: Graph) -> tuple[SavedRdd, ...]:
    named = {
        rdd_folder(location): (time, at)
        for at, stream in enumerate(graph.streams)
        for time, location in stream.rdds.items()
    }
    return tuple(
        replace(rdd, batch_time_ms=named[rdd.path][0], stream=named[rdd.path][1])
        if rdd.path in named
        else rdd
        for rdd in rdds
    )
