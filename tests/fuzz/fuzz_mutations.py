"""What can become of a file or a folder: accidents, and what a stranger could have put there."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

from fuzz_places import (
    BAIT,
    CHECKPOINT,
    NEW,
    PLAN,
    REPO,
    Content,
    Fifo,
    HardLink,
    Link,
    Socket,
    Sparse,
    Tree,
)

from floodmark.changes.plan import digest_of
from floodmark.errors import FloodmarkError
from floodmark.state.files import compression
from forged_tables import forged

_STATE = (".delta", ".snapshot", ".changelog")
_NUMBERS: list[Any] = [
    *(0, -1, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63), 2**70, 10**30, 10**400, 10_000_000),
    *(1.5, 1e308, float("nan"), float("inf"), True, False),
]
_TEXTS = [
    *("", "x", "0", "-1", "٣", "\ud800", "\udcff", "\x1b[31mred", "\x1b]0;t\x07", "\0", "a\nb", "‮"),
    *("9" * 5000, "x" * 70_000, "%00", "%s{}", "v1", "é" * 300, "1e5", "NaN", "null", "[]", "{"),
    *("..", "/", "//", ".", "a/../../b", f"../{BAIT}/thesis.txt", f"../../{BAIT}/.bashrc"),
    *(f"..\\{BAIT}", f"file:///{BAIT}", "file://tmp/x", "file:/", "memory://x", "~", "C:\\x", " "),
]
_DEEP = "as deep as can be"
_RAW = [
    *(b"", b"\0", b"\xff\xfe", b"\xf0\x9f", b"\n", b"\r\n", b"\n\n\n", b"v1\n", b"v9\n", b"v1\n{}"),
    *(b"[" * 100_000, b'{"a":' * 50_000, b"9" * 5000, b"null", b"NaN", b"[]", b"{}", b'""', b"-"),
    *(
        b'{"id":"\\ud800"}',
        b"\x1b[2J",
        b"\0" * 4096,
        b"PK\x03\x04",
        b"LZ4Block",
        b"\x28\xb5\x2f\xfd",
    ),
]
_NAMES = [
    *("0", "1", "5", "99", "999999999999999999", "9223372036854775807", "01", "-1", "1e3", ".tmp"),
    *(
        ".1.crc",
        "1.delta",
        "2.snapshot",
        "3.zip",
        "4.changelog",
        "1_x.zip",
        "7.compact",
        "metadata",
    ),
    *(
        "x\ny",
        "\x1b[31m7",
        "\udcff\udcfe",
        "a b",
        "x" * 200,
        ".7.0b.tmp",
        "é",
        "10000000000000000000",
    ),
]


def mutate(rng: Random, tree: Tree, place: str) -> str:
    """Changes the tree in one way; says which."""
    paths = sorted(tree)
    # What floodmark itself wrote is as foreign as the rest, and has fewer files.
    ours = [path for path in paths if _is_ours(path)]
    path = rng.choice(ours) if ours and rng.random() < 0.5 else rng.choice(paths)
    content = tree[path]
    draw = rng.random()
    if draw < 0.75 and isinstance(content, bytes):
        name, changed = _content(rng, path, content, tree, place)
        tree[path] = changed
        _mend_seals(rng, tree, path)
        _drop_checksum(rng, tree, path)
    elif draw < 0.9:
        name = _file(rng, path, tree)
    else:
        name = _kind(rng, path, tree, place)
    return f"{name} {path!r}"


def _is_ours(path: str) -> bool:
    return "/_floodmark/" in path or path.startswith(f"{REPO}/") or path == PLAN


def _content(rng: Random, path: str, data: bytes, tree: Tree, place: str) -> tuple[str, bytes]:
    if path.endswith(_STATE) and rng.random() < 0.5:
        try:
            inner = compression.decompress(data)
        except FloodmarkError:
            inner = b""
        name, changed = _bytes(rng, inner)
        return f"inside, {name}", compression.compress(changed, rng.choice(compression.CODECS))
    if path.endswith(".sst") and rng.random() < 0.5:
        return "forged", forged(data, rng)
    if path.endswith(".zip") and rng.random() < 0.7:
        return _in_zip(rng, data, place)
    if rng.random() < 0.65:
        changed_json = _json(rng, data, place)
        if changed_json is not None:
            return "json", changed_json
    if rng.random() < 0.1:
        other = tree[rng.choice(sorted(tree))]
        if isinstance(other, bytes):
            return "another file's", other
    return _bytes(rng, data)


def _bytes(rng: Random, data: bytes) -> tuple[str, bytes]:
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + rng.randrange(1, 64))
    match rng.choice(["flip", "flip", "cut", "insert", "remove", "repeat", "set", "whole", "int"]):
        case "flip" if data:
            changed = bytearray(data)
            for _ in range(rng.choice([1, 1, 2, 8])):
                changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            return "flip", bytes(changed)
        case "insert":
            return "insert", data[:at] + rng.choice(_RAW) + data[at:]
        case "remove":
            return "remove", data[:at] + data[end:]
        case "repeat":
            return "repeat", data[:end] + data[at:end] * rng.choice([1, 3, 500]) + data[end:]
        case "set":
            return "set", data[:at] + rng.randbytes(end - at) + data[end:]
        case "whole":
            return "whole", rng.choice([*_RAW, rng.randbytes(200)])
        case "int":
            number = rng.choice([0, 1, -1, 2**31 - 1, -(2**31), 1 << 30, 1 << 20])
            order = rng.choice(["big", "little"])
            return "int", data[:at] + number.to_bytes(4, order, signed=True) + data[at + 4 :]
    return "cut", data[:at]


def _json(rng: Random, data: bytes, place: str) -> bytes | None:
    """One value of one line of JSON made another."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    whole = _loaded("\n".join(lines))
    if isinstance(whole, (dict, list)):
        return _dumped(rng, changed(rng, whole, place))
    fitting = [n for n, line in enumerate(lines) if isinstance(_loaded(line), (dict, list, int))]
    if not fitting:
        return None
    number = rng.choice(fitting)
    text = _dumped(rng, changed(rng, _loaded(lines[number]), place))
    lines[number] = text.decode("utf-8", "surrogateescape")
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _dumped(rng: Random, value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=rng.random() < 0.8, separators=(",", ":"))
    if isinstance(value, dict) and value and rng.random() < 0.03:
        twice = json.dumps(rng.choice(sorted(value)))
        again = json.dumps(rng.choice([*_NUMBERS, *_TEXTS, None, [], {}]))
        text = f"{{{twice}:{again},{text[1:]}" if rng.random() < 0.5 else text
        text = f"{text[:-1]},{twice}:{again}}}"
    if _DEEP in text:
        # Some are read without complaint, and are too deep for whoever goes through them.
        depth = rng.choice([40, 150, 300, 450, 600, 800, 900, 960, 5000])
        opening, closing = rng.choice([("[", "]"), ('{"a":', "}"), ('{"type":', "}")])
        text = text.replace(f'"{_DEEP}"', f"{opening * depth}1{closing * depth}")
    if rng.random() < 0.03:
        deep = rng.choice(["[", '{"a":']) * 100_000
        at = rng.randrange(len(text) + 1)
        text = text[:at] + deep + text[at:]
    return text.encode("utf-8", "surrogatepass")


def changed(rng: Random, value: Any, place: str) -> Any:
    """The value with one node, anywhere in it, replaced."""
    if isinstance(value, str) and rng.random() < 0.6:
        inner = _loaded(value)
        if isinstance(inner, (dict, list)) and inner:
            return json.dumps(changed(rng, inner, place))
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(sorted(value))
        return rng.choice([_in_place, _in_place, _in_place, _less, _renamed])(
            rng, value, key, place
        )
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        others = [*value[:at], *value[at + 1 :]]
        if rng.random() < 0.15:
            return others
        if rng.random() < 0.15:
            return value * rng.choice([2, 50])
        return [*value[:at], changed(rng, value[at], place), *value[at + 1 :]]
    return _odd(rng, value, place)


def _in_place(rng: Random, value: dict[str, Any], key: str, place: str) -> Any:
    return {**value, key: changed(rng, value[key], place)}


def _less(rng: Random, value: dict[str, Any], key: str, place: str) -> Any:
    return {name: item for name, item in value.items() if name != key}


def _renamed(rng: Random, value: dict[str, Any], key: str, place: str) -> Any:
    new = rng.choice([*_TEXTS, key.upper(), key + "x"])
    return {(new if name == key else name): item for name, item in value.items()}


def _odd(rng: Random, value: Any, place: str) -> Any:
    bait = f"{place}/{BAIT}"
    kinds: list[Callable[[], Any]] = [
        lambda: rng.choice(_NUMBERS),
        lambda: rng.choice(_NUMBERS),
        lambda: rng.choice(_TEXTS),
        lambda: rng.choice(_TEXTS),
        lambda: str(rng.choice(_NUMBERS)),
        lambda: rng.choice([bait, f"{bait}/out", f"file://{bait}", f"{bait}/thesis.txt"]),
        lambda: rng.choice([f"{place}/{CHECKPOINT}", f"{place}/{NEW}", place]),
        lambda: rng.choice([None, [], {}, [[]], [None], [{}], {"": None}, {"path": 5}, [5, "x"]]),
        lambda: [value],
        lambda: {"x": value},
        lambda: _DEEP,
    ]
    return rng.choice(kinds)()


def _in_zip(rng: Random, data: bytes, place: str) -> tuple[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, NotImplementedError):
        return _bytes(rng, data)
    if not entries:
        return _bytes(rng, data)
    name = "metadata" if rng.random() < 0.6 and "metadata" in entries else rng.choice(list(entries))
    how = "zip json"
    changed = _json(rng, entries[name], place) if rng.random() < 0.7 else None
    if changed is None:
        how, changed = _bytes(rng, entries[name])
    entries[name] = changed
    if rng.random() < 0.1:
        entries[rng.choice(_NAMES + _TEXTS)] = entries.pop(name)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, content in entries.items():
            name = entry.encode("utf-8", "replace").decode()[:300].replace("\0", "")
            archive.writestr(name or "x", content)
    return f"in the zip, {how}", out.getvalue()


def _mend_seals(rng: Random, tree: Tree, path: str) -> None:
    """A digest is no signature: a stranger writes one that fits."""
    content = tree[path]
    if not isinstance(content, bytes) or rng.random() < 0.2:
        return
    value = _loaded(content.decode("utf-8", "surrogatepass")) if _is_text(content) else None
    if not isinstance(value, dict):
        return
    try:
        if path == PLAN:
            value["digest"] = digest_of(value)
        elif "/journal/" in path:
            value["plan"]["digest"] = digest_of(value["plan"])
        elif "/snapshots/" in path:
            from floodmark.storage.repository import _digest as list_digest

            body = {key: item for key, item in value.items() if key not in ("digest", "floodmark")}
            value["digest"] = list_digest(body)
        else:
            return
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return
    tree[path] = json.dumps(value).encode()


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _drop_checksum(rng: Random, tree: Tree, path: str) -> None:
    """Hadoop's side file, and Spark's own checksum, would stop most readers at once."""
    if rng.random() < 0.7:
        folder, _, name = path.rpartition("/")
        tree.pop(f"{folder}/.{name}.crc", None)
        tree.pop(f"{path}.crc", None)


def _file(rng: Random, path: str, tree: Tree) -> str:
    content = tree[path]
    folder = path.rpartition("/")[0] or path
    match rng.choice(["gone", "gone", "renamed", "twice", "folder gone", "moved", "added"]):
        case "renamed":
            tree[f"{folder}/{rng.choice(_NAMES)}"] = tree.pop(path)
            return "renamed"
        case "twice":
            tree[f"{folder}/{rng.choice(_NAMES)}"] = content
            return "twice"
        case "folder gone":
            for other in [other for other in tree if other.startswith(f"{folder}/")]:
                del tree[other]
            if not tree:
                tree[f"{CHECKPOINT}/metadata"] = b"{}"
            return "folder gone"
        case "moved":
            goal = rng.choice(sorted(tree))
            tree[goal] = tree.pop(path)
            return "moved"
        case "added":
            tree[f"{folder}/{rng.choice(_NAMES)}"] = rng.choice(_RAW)
            return "added"
    if len(tree) > 1:
        del tree[path]
    return "gone"


def _kind(rng: Random, path: str, tree: Tree, place: str) -> str:
    """Something that is not a file, where a file or a folder was."""
    bait = f"{place}/{BAIT}"
    kinds: dict[str, Callable[[], Content]] = {
        "link to a file": lambda: Link(f"{bait}/thesis.txt"),
        "link to a folder": lambda: Link(bait),
        "link upwards": lambda: Link(".."),
        "link to itself": lambda: Link(path.rpartition("/")[2]),
        "link to nothing": lambda: Link(f"{bait}/nothing"),
        "second name of a file": lambda: HardLink(f"{bait}/thesis.txt"),
        "fifo": Fifo,
        "socket": Socket,
        "sparse": lambda: Sparse(rng.choice([100 << 20, 6 << 30, 1 << 40])),
    }
    if path == PLAN:  # the user names it in the command: what it is, is the user's choice
        kinds.pop("fifo")
    name = rng.choice(sorted(kinds))
    parts = path.split("/")
    if name.startswith("link") and len(parts) > 2 and rng.random() < 0.5:
        path = "/".join(parts[: rng.randrange(2, len(parts))])
        for other in [other for other in tree if other.startswith(f"{path}/")]:
            del tree[other]
    if name == "fifo" and rng.random() < 0.2:
        del tree[path]
        path += "/inside"
    tree[path] = kinds[name]()
    return name
