"""Provides the verbs that read state: rows, types and changes of what operators remember."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from floodmark.api.arguments import Storage, require_state_extra, structured
from floodmark.api.looking import settings_to_ask
from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import WrongUse
from floodmark.storage.files import Files, open_files
from floodmark.storage.load import Entries, load

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint
    from floodmark.checkpoint.timeline import Batch
    from floodmark.statestore.diff import StateDiff
    from floodmark.statestore.dstreams import DStreamState, Parts
    from floodmark.statestore.schema import StoreSchema
    from floodmark.statestore.view import StateView


@dataclass(frozen=True)
class OpenCheckpoint(Checkpoint):
    """A checkpoint that knows its location, so that it can read its state."""

    place: Files | None = field(default=None, repr=False, compare=False)

    __repr__ = Checkpoint.__repr__

    def state(
        self,
        operator: int = 0,
        store: str | None = None,
        batch: int | None = None,
        schema: tuple[str, str] | None = None,
    ) -> StateView:
        """Return what an operator remembers after a batch, by default the last committed one."""
        assert self.place is not None
        return _open_state(self.place, self, operator, store, batch, schema)

    @property
    def batches(self) -> tuple[Batch, ...]:
        """Return every batch that is still logged, oldest first."""
        from floodmark.checkpoint.timeline import timeline
        from floodmark.screen import Shown

        return Shown(timeline(structured(self)))


def open(path: str, storage: Storage | None = None) -> OpenCheckpoint:
    """Open a checkpoint with every batch that is still logged."""
    place = open_files(str(path), storage)
    found = load(place, Entries.ALL)
    held = {each.name: getattr(found, each.name) for each in fields(found)}
    return OpenCheckpoint(**held, place=place)


def state(
    path: str,
    operator: int = 0,
    store: str | None = None,
    batch: int | None = None,
    schema: tuple[str, str] | None = None,
    storage: Storage | None = None,
    trust: bool = False,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    master: str | None = None,
) -> StateView | DStreamState:
    """Return what an operator remembers after a batch; rows are read on demand.

    For DStreams, `operator` is a stream and `batch` the time of a saved state. `trust` unpickles
    data that is not plain, and reads Kryo's records with a Spark that is started with `conf`: both
    run code of whoever wrote the checkpoint.
    """
    settings = settings_to_ask(trust, conf, master)
    place = open_files(str(path), storage)
    found = load(place)
    if found.dstreams is not None:
        require_state_extra()
        from floodmark.statestore.dstreams import open_dstream_state

        if store is not None or schema is not None:
            raise WrongUse(
                f"{path} is a DStreams checkpoint: its state has one store, and contains its types",
                do="Leave --store, --key-schema and --value-schema out.",
            )
        return open_dstream_state(
            place, found, operator, batch, trust, _parts_through_spark(settings)
        )
    return _open_state(place, structured(found), operator, store, batch, schema)


def _parts_through_spark(settings: Mapping[str, str]) -> Parts:
    def read(found: DStreamsCheckpoint, parts: Sequence[bytes]) -> list[bytes]:
        from floodmark.engine.dstreams.asking import parts_through_spark

        return parts_through_spark(settings)(found, parts)

    return read


# `floodmark.state` is a package of its own.
read_state = state


def schemas(path: str, storage: Storage | None = None) -> tuple[StoreSchema, ...]:
    """Return the types of what each operator, store and state variable remembers."""
    from floodmark.screen import Shown
    from floodmark.statestore.schema import state_schemas

    place = open_files(str(path), storage)
    return Shown(state_schemas(place, structured(load(place))))


def state_changes(
    path: str,
    first: int,
    last: int,
    operator: int = 0,
    store: str | None = None,
    limit: int = 100,
    storage: Storage | None = None,
) -> StateDiff:
    """Return the changes of the state from the end of batch `first` to the end of batch `last`."""
    require_state_extra()
    from floodmark.statestore.diff import state_changes as changes

    place = open_files(str(path), storage)
    return changes(place, structured(load(place)), operator, store, first, last, limit)


def _open_state(
    place: Files,
    checkpoint: Checkpoint,
    operator: int,
    store: str | None,
    batch: int | None,
    schema: tuple[str, str] | None,
) -> StateView:
    require_state_extra()
    from floodmark.statestore.open import open_state

    return open_state(place, checkpoint, operator, store, batch, schema)
