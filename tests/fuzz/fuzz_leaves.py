"""Every value of every JSON file, replaced by each of some wild ones: none is left to chance.

    tests/fuzz/fuzz_leaves.py [--part K/N] [--offsets]

Values that stand at the same place in files of the same kind count once. Each changed file is
given to the verbs that read its kind. Offsets of connectors that no golden checkpoint has are
taken from tests/connectors/golden_offsets.py; `--offsets` tries these alone.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from fuzz_campaign import _place, _run, _targets_a_place_of_ours
from fuzz_commands import of_place
from fuzz_places import (
    BAIT,
    CHECKPOINT,
    CLOCK,
    PLAN,
    REPO,
    Template,
    Tree,
    digest,
    lay_bait,
    make_temporary,
    put,
    templates,
)

import samples
from connectors.golden_offsets import GOLDEN, OWN_FILES

Pointer = tuple[str | int, ...]
# 1e999 is read as infinity, which no integer is; a lone surrogate cannot be written as UTF-8.
WILD = ("1e999", "NaN", "-1", str(2**70), "0.5", "null", "true", '""', '"\\ud800"', "[]", "{}")
WILD += ('"' + "../" * 3 + 'x"', "[[[1]]]", '{"a":{"b":null}}', '"9' + "9" * 400 + '"')
READERS = {
    PLAN: ("apply {plan}",),
    REPO: ("backup --list {repo}", "restore {repo} {new}", "repair {cp} --from-backup {repo}"),
    "_floodmark": (
        *("apply --resume {cp}", "undo {cp}", "forget {cp}", "inspect {cp} --json"),
        *("doctor {cp}", "compact {cp}", "copy {cp} {new} --rehome /a=/b"),
    ),
    CHECKPOINT: (
        *("inspect {cp} --json", "batches {cp} --json", "offsets {cp} --json", "state {cp} --json"),
        *("doctor {cp} --read-data", "upgrade {cp} {new}", "repair {cp} --read-data"),
        "rewind {cp} --to-batch 0 --accept out-of-reach",
    ),
}
OFFSETS = "offset of"
READERS[OFFSETS] = (
    *READERS[CHECKPOINT],
    *("offsets {cp} --starting-offsets", "copy {cp} {new}", "lag {cp} --json"),
    "upgrade {cp} {new} --without-state",
)


@dataclass(frozen=True)
class Leaf:
    template: Template
    path: str
    line: int | None
    """Of a log entry, whose lines are JSON; None where the whole file is."""
    pointer: Pointer

    @property
    def kind(self) -> str:
        if self.template.name.startswith(OFFSETS):
            return OFFSETS
        for kind in (PLAN, REPO):
            if self.path.startswith(kind):
                return kind
        return "_floodmark" if "/_floodmark/" in self.path else CHECKPOINT


def offset_templates() -> list[Template]:
    """A stream of each golden offset, with the files that its connector keeps."""
    found = []
    for kind, offsets in GOLDEN.items():
        for at, one in enumerate(offsets):
            tree = samples.logs(range(3), range(3), offset=lambda batch, one=one: one.text)
            own = b"v1\n" + one.text.encode()
            tree |= {f"sources/0/{name}": own for name in OWN_FILES.get(kind, ())}
            tree |= {} if one.initial is None else {"sources/0/0": one.initial}
            placed: Tree = {f"{CHECKPOINT}/{path}": data for path, data in tree.items()}
            found.append(Template(f"{OFFSETS} {kind} {at}", placed))
    return found


def leaves(every: list[Template]) -> Iterator[Leaf]:
    """One of each: names of files and fields that only differ in numbers and ids are alike."""
    seen = set()
    for template in every:
        for path, content in template.tree.items():
            if not isinstance(content, bytes) or len(content) > 100_000:
                continue
            for line, value in _values(content):
                for pointer in _pointers(value, ()):
                    alike = (_plain(path), line, *(_plain(str(part)) for part in pointer))
                    if alike not in seen:
                        seen.add(alike)
                        yield Leaf(template, path, line, pointer)


def _plain(name: str) -> str:
    return re.sub(r"[0-9a-f]{16,}|[0-9a-f-]{36}|\d+", "*", name)


def _values(content: bytes) -> Iterator[tuple[int | None, Any]]:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return
    whole = _json(text)
    if whole is not None:
        yield None, whole
        return
    for number, line in enumerate(text.split("\n")[:6]):
        value = _json(line)
        if value is not None:
            yield number, value


def _json(text: str) -> Any:
    """Objects and lists alone: a file may be one number, too, and has no fields."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _pointers(value: Any, above: Pointer) -> Iterator[Pointer]:
    if above:
        yield above
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _pointers(inner, (*above, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value[:2]):
            yield from _pointers(inner, (*above, number))


def changed(leaf: Leaf, wild: str) -> Tree:
    content = leaf.template.tree[leaf.path]
    assert isinstance(content, bytes)
    lines = [content.decode()] if leaf.line is None else content.decode().split("\n")
    at = leaf.line or 0
    value = copy.deepcopy(json.loads(lines[at]))
    inner = value
    for part in leaf.pointer[:-1]:
        inner = inner[part]
    inner[leaf.pointer[-1]] = "WILD"
    lines[at] = json.dumps(value).replace('"WILD"', wild, 1)
    return {**leaf.template.tree, leaf.path: "\n".join(lines).encode()}


def trials(part: int, parts: int, only_offsets: bool = False) -> tuple[int, list[str]]:
    """How many commands were run, and what is wrong with them."""
    CLOCK.install()
    os.environ["FLOODMARK_DEBUG"] = "1"
    count, wrong = 0, []
    with _place() as place:
        lay_bait(place)
        make_temporary(place)
        bait = digest(place / BAIT)
        every = [*([] if only_offsets else templates(place)), *offset_templates()]
        os.chdir(place / BAIT)
        found = [(leaf, wild) for leaf in leaves(every) for wild in WILD]
        for leaf, wild in found[part::parts]:
            tree = changed(leaf, wild)
            if not _targets_a_place_of_ours(tree.get(PLAN), place):
                continue  # where a saved plan goes is the word of the user who gives it
            for text in READERS[leaf.kind]:
                put(place, tree)
                command = of_place(text, str(place), execute=True)
                status, trouble = _run(command)
                count += 1
                if digest(place / BAIT) != bait:
                    trouble = f"something outside of the place was changed {trouble}"
                    lay_bait(place)
                if trouble:
                    where = ".".join(str(one) for one in leaf.pointer)
                    wrong.append(
                        f"{leaf.template.name}: {leaf.path} {where} = {wild[:40]}: {text}: "
                        f"{status} {trouble}"
                    )
    return count, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--offsets", action="store_true")
    arguments = parser.parse_args()
    part, parts = (int(one) for one in arguments.part.split("/"))
    count, wrong = trials(part, parts, arguments.offsets)
    print(*wrong, sep="\n")
    print(f"{count} commands, {len(wrong)} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
