"""The verbs that write a checkpoint's state anew: plans as every change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodmark.api.asked import require_state_extra

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.changes.verbs import Carrying, Change


def repartition(
    path: str, new: str, *, partitions: int, carrying: Carrying | None = None
) -> Change:
    """A new checkpoint whose state is spread over another number of partitions."""
    require_state_extra()
    from floodmark.changes import state_verbs, verbs

    return state_verbs.repartition(str(path), str(new), partitions, carrying or verbs.Carrying())


def convert(
    path: str,
    new: str,
    *,
    provider: str,
    state_format: int | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """A new checkpoint whose state the other provider keeps; `state_format` 2 has unique ids."""
    require_state_extra()
    from floodmark.changes import state_verbs, verbs

    return state_verbs.convert(
        str(path), str(new), provider, state_format, carrying or verbs.Carrying()
    )
