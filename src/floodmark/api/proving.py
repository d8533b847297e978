"""Provides the verbs that show what code computes, on forks; checkpoint and sink do not change."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from floodmark.api.arguments import (
    Storage,
    require_spark_extra,
    script_options,
    several_of,
    spark_settings,
    structured,
)
from floodmark.errors import WrongUse
from floodmark.storage.files import Files, open_files

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.checkpoint.model import Checkpoint
    from floodmark.engine.proof.compare import CodeComparison as CodeComparison
    from floodmark.engine.proof.replay import Replay as Replay
    from floodmark.engine.proof.replay import ReplayedBatch as ReplayedBatch
    from floodmark.engine.proof.row_diff import RowDifference as RowDifference

Range = tuple[int, int]


def replay(
    path: str,
    batch: int | None = None,
    *,
    batches: Range | None = None,
    app: str | None = None,
    key: Mapping[str, Any] | None = None,
    limit: int | None = None,
    export: str | None = None,
    call_foreach_batch: bool = False,
    scratch: str | None = None,
    settings: Mapping[str, str] | None = None,
    spark_log: str | None = None,
    arguments: Iterable[str] = (),
    query: str | int | None = None,
    py_files: str | Iterable[str] = (),
    script_limit: float | None = None,
    master: str | None = None,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    storage: Storage | None = None,
    stdout_to_stderr: bool = False,
    say: Callable[[str], Any] = lambda words: None,
) -> Replay:
    """Run a batch again on a fork, or the batches A to B: what it read, wrote and changed.

    The replay begins with the state before the batch and reads the offsets with which it was
    planned. Without `app` it uses the application in the note of the last start.
    """
    from floodmark.engine.proof.proof_run import ProofRun
    from floodmark.engine.proof.replay import ReplayOptions, replay_application
    from floodmark.engine.spark.session import log_to

    if (batch is None) == (batches is None):
        raise WrongUse(
            "name the batch: --batch N, or --batches A..B",
            do=f"floodmark batches {shlex.quote(path)} lists them.",
        )
    require_spark_extra()
    first, last = (batch, batch) if batch is not None else batches or (0, 0)
    files, checkpoint = _opened(path, storage, range(first - 1, last + 1))
    with log_to(spark_log, "replay") as log:
        request = ReplayOptions(
            first,
            last,
            key,
            100 if limit is None else limit,
            export,
            call_foreach_batch,
            ProofRun(
                scratch,
                settings or {},
                spark_settings(conf, master),
                log,
                stdout_to_stderr,
                script_options(arguments, query, py_files, script_limit),
                storage,
                say,
            ),
        )
        return replay_application(files, checkpoint, app, request)


def compare(
    path: str,
    *,
    old: str,
    new: str,
    batches: Range | None = None,
    keys: str | Iterable[str] = (),
    limit: int | None = None,
    export: str | None = None,
    with_file: str | None = None,
    rename: str | Iterable[str] = (),
    default: str | Iterable[str] = (),
    merge: str | Iterable[str] = (),
    accept: str | Iterable[str] = (),
    scratch: str | None = None,
    settings: Mapping[str, str] | None = None,
    spark_log: str | None = None,
    arguments: Iterable[str] = (),
    query: str | int | None = None,
    py_files: str | Iterable[str] = (),
    script_limit: float | None = None,
    master: str | None = None,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    storage: Storage | None = None,
    say: Callable[[str], Any] = lambda words: None,
) -> CodeComparison:
    """Compare what old and new code write for the same past batches, from the same state.

    Where needed, the state is first carried over for the new code; `with_file`, `rename`,
    `default`, `merge` and `accept` are those of `migrate`. Without `batches`, at most the newest
    ten are compared.
    """
    from floodmark.api.migrating import migrate
    from floodmark.changes.apply import Carrying
    from floodmark.engine.proof.compare import CompareOptions, compare_applications
    from floodmark.engine.proof.proof_run import ProofRun
    from floodmark.engine.spark.session import log_to

    require_spark_extra()
    wanted = () if batches is None else range(batches[0] - 1, batches[1] + 1)
    files, checkpoint = _opened(path, storage, wanted, every=batches is None)
    names = several_of(accept)

    def carry(place: str, goal: str, silent: tuple[str, ...]) -> None:
        migrate(
            place,
            goal,
            app=new,
            from_app=old,
            with_file=with_file,
            rename=rename,
            default=default,
            merge=merge,
            accept=tuple(dict.fromkeys((*names, *silent))),
            conf=conf,
            settings=settings,
            arguments=arguments,
            query=query,
            py_files=py_files,
            script_limit=script_limit,
            carrying=Carrying(True, 0.0, original=checkpoint.path),
        )

    with log_to(spark_log, "compare") as log:
        request = CompareOptions(
            old,
            new,
            batches,
            several_of(keys),
            20 if limit is None else limit,
            export,
            ProofRun(
                scratch,
                settings or {},
                spark_settings(conf, master),
                log,
                script=script_options(arguments, query, py_files, script_limit),
                storage=storage,
                say=say,
            ),
        )
        return compare_applications(files, checkpoint, request, carry)


def _opened(
    path: str, storage: Storage | None, batches: Iterable[int], every: bool = False
) -> tuple[Files, Checkpoint]:
    """Load a checkpoint with its whole listing, and the entries of these batches, or of all."""
    from floodmark.storage.load import Entries, load_listed

    files = open_files(str(path), storage)
    wanted = [number for number in batches if number >= 0]
    entries = Entries.ALL if every else Entries.NEWEST
    return files, structured(load_listed(files, files.list(), entries, wanted))
