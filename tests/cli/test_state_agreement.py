"""Every verb answers alike which state must exist: same checkpoint, same words, same status."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import pytest

import samples
from floodmark.cli.main import run
from rules.examples import Tree, golden

Damage = Callable[[Tree], None]
# Verbs that need the state of a batch, and stop where it is not whole.
STOPPED = (
    "state CP",
    "state CP --stats",
    "upgrade CP NEW",
    "compact CP --keep 1",
    "backup CP REPO",
    "convert CP NEW --provider PROVIDER",
    "repartition CP NEW --partitions 3",
)
REWIND = "rewind CP --to-batch LAST"
JUDGING = ("inspect CP", "doctor CP", "repair CP")


def pinned(count: int) -> Damage:
    def damage(tree: Tree) -> None:
        pin = re.compile(rb'"spark.sql.shuffle.partitions":"\d+"')
        for path in [path for path in tree if path.startswith("offsets/")]:
            tree[path] = pin.sub(b'"spark.sql.shuffle.partitions":"%d"' % count, tree[path])
            tree.pop(f"offsets/.{path.partition('/')[2]}.crc", None)

    return damage


def without(*patterns: str) -> Damage:
    def damage(tree: Tree) -> None:
        gone = [path for path in tree if any(fnmatch(path, pattern) for pattern in patterns)]
        assert gone
        for path in gone:
            del tree[path]

    return damage


FORMAT_2 = "3d33d721-9d41-4419-a7f5-4446a23aa332"
FORMAT_2_FIRST = "a2bca31f-324e-453c-b448-284b1ae95adf"
FOLDER = "{} has no state file"
FILE = "{} is missing"
PINS = "offsets/2 pins spark.sql.shuffle.partitions to {:,}, but state/0 has 2 partitions"
# What is damaged, how, what is missing, and what the verbs that stop say of it.
CASES = {
    "pinned to 10^7": ("sales-hdfs", pinned(10**7), PINS.format(10**7), "{}"),
    "pinned to 10^15": ("sales-hdfs", pinned(10**15), PINS.format(10**15), "{}"),
    "pinned to 3": ("sales-hdfs", pinned(3), "state/0/2", FOLDER),
    "first partition": ("sales-hdfs", without("state/0/0/*"), "state/0/0", FOLDER),
    "last partition": ("sales-hdfs", without("state/0/1/*"), "state/0/1", FOLDER),
    "old delta": ("sales-hdfs", without("state/0/1/*2.delta*"), "state/0/1/2.delta", FILE),
    "newest delta": ("sales-hdfs", without("state/0/1/*3.delta*"), "state/0/1/3.delta", FILE),
    "join store of a partition": (
        "join",
        without("state/0/1/right-keyToNumValues/*"),
        "state/0/1/right-keyToNumValues",
        FOLDER,
    ),
    "join store": (
        "join",
        without("state/0/*/right-keyToNumValues/*.delta*"),
        "state/0/0/right-keyToNumValues",
        FOLDER,
    ),
    "all but a snapshot": (
        "sales-hdfs-snapshot",
        without("state/0/*/*.delta*"),
        "state/0/0/4.delta",
        FILE,
    ),
    "RocksDB snapshot": ("sales-rocksdb", without("state/0/1/*3.zip*"), "state/0/1/3.zip", FILE),
    "changelog": ("sales-changelog", without("state/0/1/2.*"), "state/0/1/2.changelog", FILE),
    "newest changelog": (
        "sales-changelog",
        without("state/0/1/3.*"),
        "state/0/1/3.changelog",
        FILE,
    ),
    "first of the changelogs": (
        "sales-changelog",
        without("state/0/1/1.zip"),
        "state/0/1/1.changelog",
        FILE,
    ),
    "changelog with a unique id": (
        "sales-format-2",
        without("state/0/1/*2_*.changelog*"),
        f"state/0/1/2_{FORMAT_2}.changelog",
        FILE,
    ),
    "snapshot with a unique id": (
        "sales-format-2",
        without("state/0/1/*1_*.zip*"),
        f"state/0/1/1_{FORMAT_2_FIRST}.changelog",
        FILE,
    ),
}
SOUND = {
    "snapshot and newest delta": (
        "sales-hdfs-snapshot",
        without("state/0/*/[123].delta", "state/0/*/.[123].delta.crc"),
    ),
    "format 2": ("sales-format-2", lambda tree: None),
    "join": ("join", lambda tree: None),
    "limit": ("limit", lambda tree: None),
}


def said_by(
    verb: str, tree: Tree, place: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """The exit status, and what was printed, with one blank between words."""
    words = {
        "CP": str(place),
        "NEW": str(place.parent / "new"),
        "REPO": str(place.parent / "repo"),
        "LAST": str(committed(tree)),
        "PROVIDER": "hdfs" if any(path.endswith(".zip") for path in tree) else "rocksdb",
    }
    arguments = [words.get(word, word) for word in verb.split()]
    if arguments[0] == "state" and any("/right-" in path for path in tree):
        arguments += ["--store", "right-keyToNumValues"]
    status = run(arguments)
    printed = capsys.readouterr()
    return status, " ".join((printed.out + printed.err).split())


def committed(tree: Tree) -> int:
    return max(int(path[8:]) for path in tree if re.fullmatch(r"commits/\d+", path))


def planned(tree: Tree) -> Tree:
    """With one more batch in flight, so that going back to the newest commit is a change."""
    return tree | {f"offsets/{committed(tree) + 1}": tree[f"offsets/{committed(tree)}"]}


@pytest.mark.parametrize("case", CASES)
def test_all_see_the_same_missing_state(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, damage, missing, words = CASES[case]
    tree = golden(f"4.2/{name}")
    damage(tree)
    place = samples.write(tmp_path / "cp", tree)
    answers = {verb: said_by(verb, tree, place, capsys) for verb in (*STOPPED, *JUDGING)}
    ahead = samples.write(tmp_path / "ahead", planned(tree))
    answers[REWIND] = said_by(REWIND, tree, ahead, capsys)
    assert {verb: answers[verb][0] for verb in (*STOPPED, REWIND)} == dict.fromkeys(
        (*STOPPED, REWIND), 3
    ), answers
    for verb in (*STOPPED, REWIND):
        assert words.format(missing) in answers[verb][1], verb
    assert answers["inspect CP"][0] == 0
    fails = f"fails, because the state that it starts from is missing: {missing}"
    assert fails in answers["inspect CP"][1]
    assert answers["doctor CP"][0] == 1
    assert missing in answers["doctor CP"][1]
    status, said = answers["repair CP"]
    mended = status == 0 and "back to the end of batch" in said
    assert mended or (status == 1 and missing.rsplit("/", 1)[-1] in said), said


@pytest.mark.parametrize("case", SOUND)
def test_none_misses_what_is_not_needed(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, damage = SOUND[case]
    tree = golden(f"4.2/{name}")
    damage(tree)
    place = samples.write(tmp_path / "cp", tree)
    for verb in (*JUDGING, "state CP", "upgrade CP NEW", "compact CP --keep 1", "backup CP REPO"):
        status, said = said_by(verb, tree, place, capsys)
        assert status == 0, said
        assert "missing" not in said, said


def test_a_snapshot_that_no_commit_names_any_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lineage in the newest changelog tells of it: the commits go back to version 2 only."""
    tree = golden("4.2/sales-format-2")
    without("commits/*0*", "offsets/*0*")(tree)
    place = samples.write(tmp_path / "sound", tree)
    assert said_by("doctor CP", tree, place, capsys)[0] == 0
    without("state/0/1/*1_*.zip*")(tree)
    place = samples.write(tmp_path / "cp", tree)
    missing = f"state/0/1/1_{FORMAT_2_FIRST}.changelog"
    status, said = said_by("doctor CP", tree, place, capsys)
    assert (status, missing in said) == (1, True), said
    for verb in ("state CP", "upgrade CP NEW", "compact CP --keep 1", "backup CP REPO"):
        status, said = said_by(verb, tree, place, capsys)
        assert (status, FILE.format(missing) in said) == (3, True), said
