"""Checkpoints of every connector's form, with evidence for and against it, by every verb.

Whatever stands beside an offset, no verb gives the option of another kind, writes a place of
another kind, changes an offset that it carries, or ends in a traceback.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from golden_offsets import GOLDEN, OWN_FILES

import floodmark
import samples
from floodmark.errors import FloodmarkError

OPTIONS = {
    "kafka": "startingOffsets",
    "eventhubs": "eventhubs.startingPositions",
    "delta": "startingVersion",
    "iceberg": "stream-from-timestamp",
}
LOOK_THE_SAME = ("kafka", "eventhubs")
# Their fields are chosen by nobody else, so that spaces are those of a hand that edited the file.
ONLY_THEIRS = {"delta", "iceberg"}
PLACED = {"kafka": "0", "iceberg": "offsets/0", "file": "0"}
"""Where a stream with an empty state is given its place, in `sources/<id>/`."""
MENDED = {"file", "rate", "iceberg", "kafka"}
BESIDE = {
    "nothing": {},
    "Kafka's start": {"0": b'\0v1\n{"orders":{"0":0}}'},
    "a start below zero": {"0": b'\0v1\n{"eh":{"0":-1}}'},
    "a rate's start": {"0": b"v1\n1700000000000"},
    "a list of files": {"0": b'v1\n{"path":"/in/a","timestamp":1,"batchId":0}'},
    "damage": {"0": b"\xff\0"},
    "an empty file": {"0": b""},
    "files of its own": {"rocksdb/000012.sst": b"x"},
}
IMPOSSIBLE = {
    ("kafka", "a start below zero"),  # its log has none
    # A memory stream keeps nothing there; what does is the file source of Spark 2.1, or rate.
    *(("memory", there) for there in BESIDE if there != "nothing"),
}
NOTED = (None, *GOLDEN, "mysource", "org.acme.Hubs", "cloudfiles", "csv", "", 7)


@dataclass(frozen=True)
class Case:
    kind: str
    """Which kind of source has written it."""
    text: str
    named: bool
    beside: str
    noted: object
    own: dict[str, bytes] = field(default_factory=dict)

    @property
    def is_told(self) -> bool:
        return self.noted == self.kind

    @property
    def words(self) -> str:
        return f"{self.kind} {self.text[:40]} beside {self.beside}, noted {self.noted!r}"


def cases(seed: int, each: int) -> Iterator[Case]:
    dice = random.Random(seed)
    for kind, forms in GOLDEN.items():
        for form in forms:
            spaced = json.dumps(json.loads(form.text))
            truths = [(kind, form.text)]
            if spaced != form.text and kind not in ONLY_THEIRS:
                truths.append(("python", spaced))
            for truth, text in truths:
                beside = ["nothing", *dice.sample(sorted(BESIDE), each - 1)]
                for there in beside:
                    if (truth, there) in IMPOSSIBLE:
                        continue
                    own = dict(BESIDE[there])
                    if truth == kind and there == "nothing":
                        own = {name: b"x" for name in OWN_FILES.get(kind, ()) if name != "0"}
                        own |= {"0": form.initial} if form.initial else {}
                    noted = dice.choice([None, truth, dice.choice(NOTED)])
                    if noted != truth and noted in LOOK_THE_SAME and _has_form_of_kafka(text):
                        noted = None  # a note that lies within the form is believed
                    yield Case(truth, text, dice.random() < 0.3, there, noted, own)


def _has_form_of_kafka(text: str) -> bool:
    """Topics with numbers of partitions, none of them negative: Event Hubs writes it as well."""
    found = json.loads(text)
    return isinstance(found, dict) and all(
        isinstance(parts, dict) and all(type(one) is int and one >= 0 for one in parts.values())
        for parts in found.values()
    )


def written(case: Case, folder: Path) -> Path:
    source = "orders" if case.named else "0"
    tree = samples.logs(range(4), range(3))
    for batch in range(4):
        entry = samples.offset_entry(batch, case.text)
        if case.named:
            _, head, line = entry.decode().split("\n")
            entry = f"v2\n{head}\norders:{line}".encode()
        tree[f"offsets/{batch}"] = entry
    tree |= {f"sources/{source}/{name}": data for name, data in case.own.items()}
    if case.noted is not None:
        noted = {"kind": case.noted, **({"name": source} if case.named else {})}
        note = {"sources": [noted], "next_batch": 0, "query_id": "q", "run_id": "r"}
        tree["_floodmark/starts/1.json"] = json.dumps(note).encode()
    cp = samples.write(folder / "cp", tree)
    for path in (cp, *cp.rglob("*")):
        os.utime(path, (1, 1))  # no query runs on it
    return cp


def wrong(case: Case, folder: Path) -> Iterator[str]:
    """What a verb did that it must not do."""
    cp, source = str(written(case, folder)), "orders" if case.named else "0"
    yield from _options(case, cp)
    for verb in READING:
        with suppress(FloodmarkError):
            verb(cp)
    given = folder / "given.json"
    with suppress(FloodmarkError):
        given.write_text(json.dumps({source: json.loads(case.text)}))
        floodmark.rewind(cp, to_offsets=str(given), accept=ACCEPTED)
    with suppress(FloodmarkError):
        for step in floodmark.repair(cp).plan.steps:
            if step.path.startswith("sources/") and not _may_be(case, MENDED):
                yield f"repair does {step.do} {step.path}"
    for name, verb in MOVING.items():
        with suppress(FloodmarkError):
            verb(cp, str(folder / name))
            after = (folder / name / "offsets/3").read_bytes()
            if after != (folder / "cp/offsets/3").read_bytes():
                yield f"{name} changes the offset"
            for file, data in case.own.items():
                kept = folder / name / "sources" / source / file
                if file != "offsets/0" and (not kept.exists() or kept.read_bytes() != data):
                    yield f"{name} does not carry sources/{source}/{file}"
    yield from _empty(case, cp, source, str(folder / "empty"))


def _options(case: Case, cp: str) -> Iterator[str]:
    for kinds in (None, {"orders" if case.named else "0": case.kind}):
        with suppress(FloodmarkError):
            for one in floodmark.offsets(cp, source_kinds=kinds).sources:
                name = one.option.name if one.option is not None else None
                if name is None or name == OPTIONS.get(case.kind):
                    continue
                doubted = case.kind in LOOK_THE_SAME and "look the same" in (one.note or "")
                if not doubted or case.is_told or kinds is not None:
                    yield f"offsets gives {name} for {kinds}, with the note {one.note!r}"


def _empty(case: Case, cp: str, source: str, new: str) -> Iterator[str]:
    """A stream that begins with an empty state gets a place from its own kind alone."""
    with suppress(FloodmarkError):
        plan = floodmark.upgrade(cp, new, without_state=True, accept="out-of-reach").plan
        places = {step.path for step in plan.steps if step.path.startswith("sources/")}
        mine = {f"sources/{source}/{PLACED[one]}" for one in PLACED if _may_be(case, {one})}
        if places - mine:
            yield f"upgrade --without-state writes {sorted(places - mine)}"
        for name in set(OPTIONS.values()) - {OPTIONS.get(case.kind)}:
            if any(f"option('{name}'" in note for note in plan.notes):
                yield f"upgrade --without-state tells of {name}"


def _may_be(case: Case, kinds: set[str]) -> bool:
    """Kafka's and Event Hubs' form is one, and where nobody says which it is Kafka's."""
    own = set(LOOK_THE_SAME) if case.kind in LOOK_THE_SAME and not case.is_told else {case.kind}
    return bool(own & kinds)


ACCEPTED = ("skips", "out-of-reach")
READING: tuple[Callable[[str], Any], ...] = (
    floodmark.inspect,
    floodmark.batches,
    floodmark.doctor,
    lambda cp: floodmark.diff(cp, batches=(1, 2)),
    floodmark.lag,
    lambda cp: floodmark.rewind(cp, to_batch=1, accept=ACCEPTED),
)
MOVING: dict[str, Callable[[str, str], Any]] = {
    "upgrade": lambda cp, new: floodmark.upgrade(cp, new, execute=True),
    "copy": lambda cp, new: floodmark.copy(cp, new, execute=True),
}


@pytest.mark.parametrize("kind", GOLDEN)
def test_no_verb_takes_a_source_for_another_kind(kind: str, tmp_path: Path) -> None:
    mine = [one for one in cases(21, 3) if one.kind == kind]
    found = [
        f"{case.words}: {told}"
        for number, case in enumerate(mine)
        for told in wrong(case, tmp_path / str(number))
    ]
    assert found == []
    assert mine


@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(5))
def test_many_look_alikes(seed: int, tmp_path: Path) -> None:
    found = [
        f"{case.words}: {told}"
        for number, case in enumerate(cases(seed, len(BESIDE)))
        for told in wrong(case, tmp_path / str(number))
    ]
    assert found == []
