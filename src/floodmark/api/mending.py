"""The verbs that repair or shrink a checkpoint: `repair` and `compact`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from floodmark.api.arguments import Storage, carrying_of, kept, require_state_extra, several_of

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.changes.verbs.carrying_out import Carrying, Change


def repair(
    path: str,
    *,
    accept: str | Iterable[str] = (),
    sink: str | None = None,
    from_backup: str | None = None,
    read_data: bool = False,
    watch: float | str | None = None,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """The smallest safe mend for each of the doctor's findings that has one."""
    from floodmark.changes.planners.repair import RepairOptions
    from floodmark.changes.verbs import repair as repairing

    if read_data:
        require_state_extra()
    options = RepairOptions(several_of(accept), sink, read_data, from_backup)
    how = carrying_of(carrying, execute, wait, storage, watch=watch)
    return kept(repairing.repair(str(path), options, how), how, out)


def compact(
    path: str,
    *,
    keep: int | None = None,
    sink: str | None = None,
    accept: str | Iterable[str] = (),
    watch: float | str | None = None,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Fewer files: what neither a start nor going back to a kept batch needs is removed."""
    from floodmark.changes.verbs import compact as compacting

    how = carrying_of(carrying, execute, wait, storage, accept=accept, watch=watch)
    return kept(compacting.compact(str(path), keep, sink, how), how, out)
