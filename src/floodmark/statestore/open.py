"""Opens the state of an operator after a batch, without Spark.

`open_state` finds what can be read and what it means. The rows come one partition at a time, in
pieces, so that a state larger than memory can be exported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from floodmark.checkpoint.commits import parse_commit
from floodmark.checkpoint.conf_keys import (
    MERGE_VERSION,
    PROVIDER_CLASS,
    ROW_CHECKSUMS,
    STATE_CODEC,
    STATE_ENCODING,
)
from floodmark.checkpoint.layout import (
    CHECKSUM,
    COMMITS,
    DEFAULT_STORE,
    OFFSETS,
    STATE,
    STATE_SCHEMA,
    FileInfo,
    StateFile,
    operator_metadata_paths,
    schema_file,
    state_files,
)
from floodmark.checkpoint.metadata import OperatorMetadata, parse_operator_metadata
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.offsets import parse_offsets
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.state_chain import (
    oldest_versions,
    partition_count,
    store_names,
    unique_id,
)
from floodmark.errors import FloodmarkError, NoAnswer, StatePurged, UnknownProvider, WrongUse
from floodmark.state.rows.types import Struct, ddl
from floodmark.state.shapes.operators import Reading, readings
from floodmark.state.shapes.schema import ColumnFamily, StateSchema, is_keyed, parse_schema
from floodmark.statestore.store import StoreAt, named
from floodmark.statestore.view import StateView
from floodmark.storage.files import Files

if TYPE_CHECKING:  # this imports query plans, which reading state does not need
    from floodmark.checkpoint.outline import OperatorOutline

_PROVIDERS = ("HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider")
_LISTED = "`floodmark batches CP` lists them."


def open_state(
    files: Files,
    checkpoint: Checkpoint,
    operator: int = 0,
    store: str | None = None,
    batch: int | None = None,
    schema: tuple[str, str] | None = None,
) -> StateView:
    """Return the state of an operator after a batch, by default the last committed one.

    `store` is a store, a join's side (`left`, `right`), a state variable or `timers`. `schema`
    gives key and value (as DDL or Spark's JSON) if the checkpoint has no schema.
    """
    checkpoint.refuse_unexamined(operator)
    listed = _listing(files, checkpoint, operator)
    every = checkpoint.state_files if checkpoint.complete else state_files(listed)
    found = [file for file in every if file.operator == operator]
    if not found:
        raise _no_such_operator(checkpoint, operator)
    number = _batch(checkpoint, found, batch)
    conf = _conf(files, checkpoint, number)
    _check_provider(conf)
    metadata = _metadata(files, listed, operator, number)
    declared = {info.store_name for info in metadata.stores} if metadata else ()
    stores = store_names({file.store for file in found}, declared)
    schemas, written = _schemas(files, listed, operator, stores, metadata, number)
    own = schemas
    if schema is not None:
        schemas = {name: _given(schema) for name in stores}
    prefix = metadata.stores[0].num_cols_prefix_key if metadata and metadata.stores else 0
    properties = metadata.properties_json if metadata else ""
    choices = readings(stores, schemas, properties, prefix)
    reading = _choose(choices, store, operator)
    if schema is not None and reading.folder in own:
        _require_same(reading, own[reading.folder])
    partitions = _partitions(checkpoint, operator, reading.key, found, number)
    crcs = frozenset(
        file.path for file in listed if file.path.endswith(CHECKSUM) and "/." not in file.path
    )
    unique = _unique_ids(files, checkpoint, operator, number)

    def at(folder: str) -> StoreAt:
        mine = [file for file in found if file.store == folder]
        by_partition: dict[int, list[StateFile]] = {partition: [] for partition in partitions}
        for file in mine:
            if file.partition in by_partition:
                by_partition[file.partition].append(file)
        return StoreAt(
            files,
            operator,
            folder,
            number + 1,
            max(mine, key=lambda file: file.version).provider if mine else "hdfs",
            {partition: tuple(own) for partition, own in by_partition.items()},
            {p: ids for p in partitions if (ids := unique_id(unique, p, folder))},
            crcs,
            conf.get(ROW_CHECKSUMS, "false").lower() == "true",
            b"" if conf.get(MERGE_VERSION, "1") == "2" else b",",
        )

    view = StateView(
        operator,
        metadata.operator_name if metadata else None,
        reading.name,
        tuple(choice.name for choice in choices),
        number,
        partitions,
        reading,
        at(reading.folder),
        at(reading.counts.folder) if reading.counts else None,
        reading.family is not None and conf.get(STATE_ENCODING, "unsaferow").lower() == "avro",
        written.get(reading.family or ""),
        # Every offset entry since 3.1 has this setting, and 3.1 was the first to write schemas.
        STATE_CODEC in conf,
        schema is not None,
    )
    if view.given:
        view.require_first_rows_fit()
    return view


def operator_outline(
    files: Files, checkpoint: Checkpoint, operator: int, batch: int | None = None
) -> OperatorOutline:
    """Return the shape of an operator's state, from its own files; `batch` as in open_state."""
    from floodmark.checkpoint.outline import OperatorOutline

    listed = _listing(files, checkpoint, operator)
    number = checkpoint.committed_batch or 0 if batch is None else batch
    metadata = _metadata(files, listed, operator, number)
    found = {file.store for file in state_files(listed) if file.operator == operator}
    # Before its first state file an operator has at most a schema.
    declared = {info.store_name for info in metadata.stores} if metadata else ()
    stores = store_names(found, declared)
    schemas, _ = _schemas(files, listed, operator, stores, metadata, number)
    return OperatorOutline(
        operator,
        metadata.operator_name if metadata else None,
        {store: schema.outline for store, schema in schemas.items()},
        metadata.stores[0].num_cols_prefix_key if metadata and metadata.stores else 0,
        metadata.properties_json if metadata else "",
    )


def operator_schemas(files: Files, checkpoint: Checkpoint, operator: int) -> dict[str, StateSchema]:
    """Return the schema of each store of an operator after the last committed batch."""
    listed = _listing(files, checkpoint, operator)
    number = checkpoint.committed_batch or 0
    metadata = _metadata(files, listed, operator, number)
    found = {file.store for file in state_files(listed) if file.operator == operator}
    declared = {info.store_name for info in metadata.stores} if metadata else ()
    return _schemas(files, listed, operator, store_names(found, declared), metadata, number)[0]


def _listing(files: Files, checkpoint: Checkpoint, operator: int) -> tuple[FileInfo, ...]:
    if checkpoint.complete:
        prefix = f"{STATE}/{operator}/"
        return tuple(file for file in checkpoint.files if file.path.startswith(prefix))
    listing = files.list(f"{STATE}/{operator}")
    return listing.files


def _no_such_operator(checkpoint: Checkpoint, operator: int) -> FloodmarkError:
    known = [str(one.operator) for one in checkpoint.state_operators]
    if not known:
        return NoAnswer(
            f"{checkpoint.path} has no state",
            "The query keeps no state: only aggregations, joins, deduplication and similar "
            "operators do.",
        )
    if str(operator) in known:
        return NoAnswer(
            f"operator {operator} has no state yet", "No batch of this operator has finished yet."
        )
    return WrongUse(
        f"{checkpoint.path} has no operator {operator}",
        f"The operators are {', '.join(known)}.",
        "Choose one with --operator; `floodmark inspect CP` says what each is.",
    )


def _batch(checkpoint: Checkpoint, found: list[StateFile], batch: int | None) -> int:
    if batch is None:
        if checkpoint.committed_batch is not None:
            return checkpoint.committed_batch
        # Spark 2.1 kept no commit log: take the newest version that every partition has.
        newest: dict[int, int] = {}
        for file in found:
            newest[file.partition] = max(newest.get(file.partition, 0), file.version)
        return min(newest.values()) - 1
    if batch < 0:
        raise WrongUse(f"there is no batch {batch}", "Batches are numbered from 0.", _LISTED)
    last = max(file.version for file in found) - 1
    if batch > last:
        raise NoAnswer(
            f"batch {batch} has left no state yet",
            f"The newest state is from batch {last}.",
            _LISTED,
        )
    if (
        checkpoint.commit_ids
        and batch < checkpoint.commit_ids[0]
        and batch not in checkpoint.offset_ids
    ):
        raise StatePurged(
            f"batch {batch} is no longer in the log",
            f"The oldest batch still logged is {checkpoint.commit_ids[0]}.",
            "Choose a later batch.",
        )
    return batch


def _conf(files: Files, checkpoint: Checkpoint, batch: int) -> Mapping[str, str]:
    entry = checkpoint.offsets.get(batch)
    if entry is None and batch in checkpoint.offset_ids:
        with named(f"{OFFSETS}/{batch}"):
            entry = parse_offsets(files.read(RelativePath(f"{OFFSETS}/{batch}")))
    if entry is None or entry.metadata is None:
        return checkpoint.conf
    return entry.metadata.conf


def _check_provider(conf: Mapping[str, str]) -> None:
    provider = conf.get(PROVIDER_CLASS)
    if provider is not None and not provider.endswith(_PROVIDERS):
        raise UnknownProvider(
            f"the state is kept by {provider}",
            "Only Spark's own HDFSBackedStateStoreProvider and RocksDBStateStoreProvider are "
            "known; another class can encrypt its files or use any other form.",
            "Read it with Spark and that class on its class path.",
        )


def _metadata(
    files: Files, listed: tuple[FileInfo, ...], operator: int, batch: int
) -> OperatorMetadata | None:
    for path in operator_metadata_paths(listed, operator, batch):
        with named(path):
            return parse_operator_metadata(files.read(RelativePath(path)))
    return None


def _schemas(
    files: Files,
    listed: tuple[FileInfo, ...],
    operator: int,
    stores: tuple[str, ...],
    metadata: OperatorMetadata | None,
    batch: int,
) -> tuple[dict[str, StateSchema], dict[str, dict[int, Struct]]]:
    """Return each store's schema, and every value schema by column family and id."""
    there = {file.path for file in listed}
    schemas: dict[str, StateSchema] = {}
    written: dict[str, dict[int, Struct]] = {}
    for store in stores:
        paths = _evolved(there, operator, store, metadata, batch)
        if not paths:
            paths = [path for path in (schema_file(operator, store),) if path in there]
        for path in paths:
            with named(path):
                schemas[store] = parse_schema(files.read(RelativePath(path)))
            for family in schemas[store].families:
                written.setdefault(family.name, {})[family.value_id or 0] = family.value
    return schemas, written


def _evolved(
    there: set[str], operator: int, store: str, metadata: OperatorMetadata | None, batch: int
) -> list[str]:
    """Return the v3 schema files up to a batch, oldest first."""
    folder = f"{STATE}/{operator}/{STATE_SCHEMA}/{store}/"
    names = [path[len(folder) :] for path in there if path.startswith(folder)]
    dated = sorted(
        (int(head), name)
        for name in names
        if (head := name.split("_")[0]).isdecimal() and "/" not in name and int(head) <= batch
    )
    # The metadata's absolute paths are wrong in a moved checkpoint, so only names are used.
    known = [
        path.rsplit("/", 1)[1]
        for info in (metadata.stores if metadata else ())
        if info.store_name == store
        for path in info.schema_paths
        if "/" in path
    ]
    chosen = [name for name in known if name in {name for _, name in dated}]
    return [folder + name for name in chosen or [name for _, name in dated]]


def _given(schema: tuple[str, str]) -> StateSchema:
    from floodmark.state.rows.ddl import struct_json

    return StateSchema(
        2, (ColumnFamily("default", struct_json(schema[0]), struct_json(schema[1])),)
    )


def _require_same(reading: Reading, own: StateSchema) -> None:
    """Refuse a given schema that differs from Spark's: bytes alone show little about types."""
    from floodmark.state.rows.fitting import same_bytes

    assert reading.schema is not None
    for family in own.families:
        pairs = ((reading.schema.key, family.key), (reading.schema.value, family.value))
        if all(same_bytes(given, kept) for given, kept in pairs):
            return
    kept = own.families[0]
    raise WrongUse(
        "--key-schema and --value-schema differ from the schema that Spark wrote",
        f"The checkpoint has its own schema: key {ddl(kept.key)}, value {ddl(kept.value)}.",
        "Leave both options out; floodmark then uses the checkpoint's schema.",
    )


def _choose(choices: tuple[Reading, ...], store: str | None, operator: int) -> Reading:
    if not choices:
        raise NoAnswer(
            f"operator {operator} has no store that can be read",
            do="`floodmark inspect CP` shows the operators and their stores.",
        )
    if store is None or (store == DEFAULT_STORE and len(choices) == 1):
        return choices[0]
    for choice in choices:
        if choice.name == store:
            return choice
    names = ", ".join(choice.name for choice in choices)
    raise WrongUse(
        f"operator {operator} has no store {store!r}",
        f"The operator has {names}.",
        "Choose one with --store.",
    )


def _partitions(
    checkpoint: Checkpoint,
    operator: int,
    key: Struct | None,
    found: list[StateFile],
    batch: int,
) -> tuple[int, ...]:
    oldest = oldest_versions(found)
    keyed = is_keyed(key) or operator in checkpoint.keyed
    count = partition_count(checkpoint, operator, batch + 1, oldest, keyed)
    count.require()
    return tuple(range(count.needed))


def _unique_ids(
    files: Files, checkpoint: Checkpoint, operator: int, batch: int
) -> tuple[tuple[str, ...], ...]:
    commit = checkpoint.commits.get(batch)
    if commit is None and batch in checkpoint.commit_ids:
        with named(f"{COMMITS}/{batch}"):
            commit = parse_commit(files.read(RelativePath(f"{COMMITS}/{batch}")))
    return commit.state_unique_ids.get(operator, ()) if commit else ()
