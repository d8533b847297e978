"""Checkpoints made up for the tests: a mapping of path to bytes, put wherever a test wants it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import FileGone, FloodmarkError
from floodmark.state.files.compression import compress
from floodmark.state.files.records import render_records
from floodmark.storage.files import Files, Folder, Listing
from floodmark.storage.load import Entries, load

QUERY_ID = "5a0c362f-824f-43a3-940d-3be0f4a399fd"
BEGAN_MS = 1_794_700_000_000
BATCH_MS = 12_000
CONF = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
    "spark.sql.shuffle.partitions": "4",
}
DELTA_OFFSET = (
    '{"sourceVersion":1,"reservoirId":"a1b2","reservoirVersion":7,"index":-1,'
    '"isStartingVersion":false}'
)
Tree = dict[str, bytes]


def write_delta(keys: list[bytes], values: list[bytes | None], codec: str = "lz4") -> bytes:
    """A file of the state; None removes its key."""
    return compress(render_records(keys, values), codec)


def kafka_offset(batch: int, topic: str = "orders") -> str:
    return f'{{"{topic}":{{"0":{400 + 8 * batch},"1":{500 + 9 * batch}}}}}'


def time_of(batch: int) -> int:
    return BEGAN_MS + batch * BATCH_MS


def offset_entry(
    batch: int,
    *lines: str,
    watermark_ms: int = 0,
    conf: Mapping[str, str] | None = None,
) -> bytes:
    metadata = {
        "batchWatermarkMs": watermark_ms,
        "batchTimestampMs": time_of(batch),
        "conf": dict(CONF if conf is None else conf),
    }
    return "\n".join(["v1", json.dumps(metadata, separators=(",", ":")), *lines]).encode()


def commit_entry(watermark_ms: int = 0) -> bytes:
    return b'v1\n{"nextBatchWatermarkMs":%d}' % watermark_ms


def operator_metadata(operator: int = 0, partitions: int = 4) -> bytes:
    store = {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": partitions}
    info = {"operatorId": operator, "operatorName": "stateStoreSave"}
    fields = {"operatorInfo": info, "stateStoreInfo": [store]}
    return ("v1\n" + json.dumps(fields, separators=(",", ":"))).encode()


def state_schema() -> bytes:
    """Version 2: the key's and the value's schema, each in chunks, as Java's writeUTF has them."""
    text = b'{"type":"struct","fields":[]}'
    chunks = b"\0\0\0\x01" + len(text).to_bytes(2, "big") + text
    return b"\0\x02v2" + chunks + chunks


def logs(planned: Iterable[int], committed: Iterable[int], offset: object = kafka_offset) -> Tree:
    """metadata, offsets and commits. `offset` makes a batch's only offset line."""
    assert callable(offset)
    tree = {"metadata": b'{"id":"%s"}' % QUERY_ID.encode()}
    tree |= {f"offsets/{batch}": offset_entry(batch, offset(batch)) for batch in planned}
    tree |= {f"commits/{batch}": commit_entry() for batch in committed}
    return tree


def sales(batches: int = 8, partitions: int = 4, in_flight: bool = True) -> Tree:
    """A stateful Kafka stream; with `in_flight` its last batch has no commit yet."""
    done = batches - 1 if in_flight else batches
    tree = logs(range(batches), range(done))
    conf = CONF | {"spark.sql.shuffle.partitions": str(partitions)}
    tree |= {f"offsets/{n}": offset_entry(n, kafka_offset(n), conf=conf) for n in range(batches)}
    tree["sources/0/0"] = b'\0v1\n{"orders":{"0":392,"1":491}}'
    tree["state/0/_metadata/metadata"] = operator_metadata(0, partitions)
    tree["state/0/0/_metadata/schema"] = state_schema()
    for partition in range(partitions):
        for version in range(1, done + 1):
            tree[f"state/0/{partition}/{version}.delta"] = b"delta" * 10
    return tree


def file_stream() -> Tree:
    """A file source whose log runs ahead of the batches: one file waits to be taken."""

    def entry(*ids: int) -> bytes:
        lines = [
            f'{{"path":"file:///in/day%20{i}.json","timestamp":{time_of(i)},"batchId":{i}}}'
            for i in ids
        ]
        return "\n".join(["v1", *lines]).encode()

    tree = logs(range(3), range(3), offset=lambda batch: f'{{"logOffset":{(0, 2, 2)[batch]}}}')
    tree |= {f"sources/0/{i}": entry(i) for i in range(4)}
    return tree


def write(folder: Path, tree: Mapping[str, bytes]) -> Path:
    for path, data in tree.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder


def put(files: Files, tree: Mapping[str, bytes]) -> Files:
    for path, data in tree.items():
        files.write(path, data)
    return files


class HeldFiles:
    """`Files` over a mapping. `gone` are listed and then not there any more."""

    def __init__(
        self,
        tree: Mapping[str, bytes],
        gone: Sequence[str] = (),
        root: str = "held",
        reads_cost: bool = False,
    ) -> None:
        self.tree = dict(tree)
        self.gone = frozenset(gone)
        self.root = root
        self.reads_cost = reads_cost
        self.reads: list[str] = []

    def list(self, folder: str = "", most: int | None = None) -> Listing:
        prefix = folder + "/" if folder else ""
        found = sorted(path for path in self.tree if path.startswith(prefix))
        cut = found[:most] if self.reads_cost else found
        files = tuple(FileInfo(path, len(self.tree[path]), BEGAN_MS) for path in cut)
        return Listing(files, len(cut) == len(found))

    def level(self, folder: str = "") -> Folder:
        start = len(folder) + 1 if folder else 0
        inside = [path[start:] for path in self.tree if not folder or path.startswith(folder + "/")]
        return Folder(
            tuple(sorted({path.split("/")[0] for path in inside if "/" in path})),
            tuple(sorted(path for path in inside if "/" not in path)),
        )

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        if path in self.gone or path not in self.tree:
            raise FileGone(f"{path} is not there")
        return self.tree[path]

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes | FloodmarkError]:
        found: dict[str, bytes | FloodmarkError] = {}
        for path in paths:
            try:
                found[path] = self.read(path)
            except FloodmarkError as error:
                found[path] = error
        return found

    def write(self, path: str, data: bytes) -> None:
        self.tree[path] = data

    def put(self, path: str, local: str) -> None:
        self.write(path, Path(local).read_bytes())

    def create(self, path: str, data: bytes) -> bool:
        return path not in self.tree and self.tree.setdefault(path, data) is data

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.tree.pop(path, None)

    def below(self, folder: str) -> HeldFiles:
        start = len(folder) + 1
        inside = {k[start:]: v for k, v in self.tree.items() if k.startswith(folder + "/")}
        return HeldFiles(inside, (), f"{self.root}/{folder}", self.reads_cost)


def checkpoint(tree: Mapping[str, bytes], entries: Entries = Entries.ALL) -> Checkpoint:
    return load(HeldFiles(tree), entries)
