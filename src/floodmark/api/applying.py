"""Provides the verbs that execute a saved plan, resume a change, or take it back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from floodmark.api.arguments import Storage, carrying_of, kept

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.changes.apply import Carrying, Change


def apply(
    plan: str,
    *,
    sink: str | None = None,
    wait: float | str | None = None,
    read_data: bool = False,
    storage: Storage | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Execute a saved plan, if everything is still as it was.

    `sink`: the file sink's folder, if the plan changes its log.
    """
    from floodmark.changes.apply_saved import apply_saved

    how = carrying_of(carrying, True, wait, storage, read_data=read_data)
    return apply_saved(str(plan), how, sink)


def resume(
    path: str,
    *,
    origin: str | None = None,
    sink: str | None = None,
    execute: bool = False,
    wait: float | str | None = None,
    read_data: bool = False,
    storage: Storage | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Resume a change of this checkpoint that stopped midway.

    `origin`: the checkpoint or repository that the change reads, if it is another location; `sink`:
    the file sink's folder, if the change changes its log.
    """
    from floodmark.changes.apply_saved import resume_change

    how = carrying_of(carrying, execute, wait, storage, read_data=read_data)
    return kept(resume_change(str(path), how, origin, sink), how, None)


def undo(
    path: str,
    *,
    sink: str | None = None,
    accept: str | Iterable[str] = (),
    watch: float | str | None = None,
    execute: bool = False,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Take back the last change of a checkpoint, finished or half done.

    `sink`: the file sink's folder, if the change has changed its log.
    """
    from floodmark.changes.apply_saved import take_back

    how = carrying_of(carrying, execute, None, storage, accept=accept, watch=watch)
    return kept(take_back(str(path), how, sink), how, out)


def forget(
    path: str,
    *,
    execute: bool = False,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Remove what changes have kept."""
    from floodmark.changes.apply_saved import forget_kept

    how = carrying_of(carrying, execute, None, storage)
    return kept(forget_kept(str(path), how), how, out)
