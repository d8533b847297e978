"""The verbs that carry out a saved plan, go on with a change, or take it back."""

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
    """Carries out a saved plan, if everything is still as it was.

    `sink`: the file sink's folder, where the plan changes its log.
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
    """Goes on with a change of this place that stopped midway.

    `origin`: the checkpoint or repository that it reads from, if that is another place; `sink`:
    the file sink's folder, where it changes its log.
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
    """Takes back the last change of a checkpoint, whole or half done.

    `sink`: the file sink's folder, where the change has changed its log.
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
    """Removes what changes have kept."""
    from floodmark.changes.apply_saved import forget_kept

    how = carrying_of(carrying, execute, None, storage)
    return kept(forget_kept(str(path), how), how, out)
