"""How the broken examples break things. Side files are kept true unless the example is about them."""

from __future__ import annotations

from floodmark.checkpoint.layout import side_file

import json
import re


from floodmark.checkpoint.checksums.sidefiles import side_file_of

Tree = dict[str, bytes]


def drop(tree: Tree, *paths: str) -> None:
    for path in paths:
        del tree[path]
        tree.pop(side_file(path), None)


def put(tree: Tree, path: str, data: bytes) -> None:
    tree[path] = data
    if side_file(path) in tree:
        tree[side_file(path)] = side_file_of(data)


def cut(tree: Tree, path: str, keep: float = 0.6) -> None:
    put(tree, path, tree[path][: int(len(tree[path]) * keep)])


def replace(tree: Tree, path: str, old: str, new: str) -> None:
    assert old.encode() in tree[path]
    put(tree, path, tree[path].replace(old.encode(), new.encode()))


def set_metadata(tree: Tree, batch: int, **fields: object) -> None:
    """Changes fields of an offset entry's second line."""
    version, line, *offsets = tree[f"offsets/{batch}"].decode().split("\n")
    metadata = json.loads(line) | fields
    text = json.dumps(metadata, separators=(",", ":"))
    put(tree, f"offsets/{batch}", "\n".join([version, text, *offsets]).encode())


def metadata(tree: Tree, batch: int) -> dict:
    return json.loads(tree[f"offsets/{batch}"].decode().split("\n")[1])


def set_conf(tree: Tree, batch: int, key: str, value: str | None) -> None:
    conf = dict(metadata(tree, batch)["conf"])
    conf.pop(key, None)
    set_metadata(tree, batch, conf=conf if value is None else conf | {key: value})


def as_version_2(tree: Tree, batch: int) -> None:
    _, line, *offsets = tree[f"offsets/{batch}"].decode().split("\n")
    named = [f"{at}:{offset}" for at, offset in enumerate(offsets)]
    put(tree, f"offsets/{batch}", "\n".join(["v2", line, *named]).encode())


def newest_table(tree: Tree) -> str:
    """An SST that the newest snapshot of partition 0 names."""
    from floodmark.state.files.rocksdb import read_snapshot

    zips = [path for path in tree if path.startswith("state/0/0/") and path.endswith(".zip")]
    newest = max(zips, key=lambda path: int(path.rsplit("/", 1)[1].split(".")[0].split("_")[0]))
    return "state/0/0/SSTs/" + read_snapshot(tree[newest]).tables[0].stored


def put_time(tree: Tree, batch: int, time_ms: int) -> None:
    text = re.sub(rb'"batchTimestampMs":\d+', b'"batchTimestampMs":%d' % time_ms, tree[f"offsets/{batch}"])
    put(tree, f"offsets/{batch}", text)
