"""Every doctor's rule fires on its broken example, and only there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import floodmark
from floodmark.checkpoint.restart import Action, restart
from floodmark.checkpoint.start_note import packed_tree
from floodmark.diagnosis.gather import gather
from floodmark.errors import CannotRead
from floodmark.rules.registry import examine, rules_of
from plan_trees import of_step
from rules.examples import BROKEN, diagnose, example, golden, golden_names, home, read_tree
from samples import HeldFiles

RULES = [known.rule for known in rules_of("checkpoint")]
CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
# True of these checkpoints, and no trouble where they are used as they are meant to.
TRUE = {"async-progress": {"sparse-log"}, "offset-log-v2": {"partition-count-missing"}}
TRUE_IN_CORPUS = {
    "checkpoint-version-4.0.0-tws-unsaferow": {"disagreeing-side-file", "moved-checkpoint"},
    "checkpoint-test-offsetId-commitId-inconsistent": {"offset-gap", "two-writers"},
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_fires_on_its_example_and_on_nothing_else_there(rule):
    broken = example("checkpoint", rule.name.replace("-", "_"))
    place = home(broken.FROM)
    healthy = golden(broken.FROM)
    assert {item.rule for item in diagnose(healthy, place)} == set()

    tree = dict(healthy)
    broken.damage(tree)
    findings = diagnose(
        tree,
        getattr(broken, "PLACE", place),
        getattr(broken, "MTIMES", None),
        getattr(broken, "SHARE", None),
        getattr(broken, "OUTSIDE", None),
        getattr(broken, "UNLISTED", None),
    )

    assert {item.rule for item in findings} == {rule.name}
    for finding in findings:
        assert finding.code == rule.code
        assert finding.path
        assert all(words.endswith((".", "…")) for words in (finding.what, finding.why)), finding
        assert finding.do


def test_every_rule_has_one_example():
    examples = {path.stem.replace("_", "-") for path in (BROKEN / "checkpoint").glob("*.py")}
    assert examples == {rule.name for rule in RULES}


@pytest.mark.parametrize("name", golden_names())
@pytest.mark.parametrize("share", [None, 1.0], ids=["names", "read-data"])
def test_no_false_alarm_on_golden_checkpoints(name, share):
    expected = TRUE.get(name.split("/")[1], set())
    assert {item.rule for item in diagnose(golden(name), home(name), share=share)} == expected


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of other Sparks' checkpoints is absent")
def test_no_false_alarm_on_the_corpus():
    folders = sorted(path.parent for path in CORPUS.rglob("offsets") if path.is_dir())
    assert folders
    found = {
        folder.relative_to(CORPUS).as_posix(): {
            item.rule for item in diagnose(read_tree(folder), share=1.0)
        }
        for folder in folders
    }
    assert {name: rules for name, rules in found.items() if rules} == TRUE_IN_CORPUS


def test_a_stand_in_for_a_lost_entry_is_no_second_writer():
    """`rewind` writes the newest entry twice where the one before it is purged."""
    tree = golden("3.5/sales-hdfs")
    tree["offsets/1"] = tree["offsets/2"]
    for side in ("offsets/.1.crc", "commits/0", "commits/.0.crc", "commits/1", "commits/.1.crc"):
        del tree[side]
    del tree["offsets/0"], tree["offsets/.0.crc"]
    assert {item.rule for item in diagnose(tree, home("3.5/sales-hdfs"))} == set()


def starts(*ids):
    """Notes of starts: (query, run) each."""
    return {
        f"_floodmark/starts/{at}.json": b'{"query_id": "%s", "run_id": "%s"}' % (query, run)
        for at, (query, run) in enumerate(ids)
    }


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        ([(b"q", b"1"), (b"q", b"2"), (b"q", b"3")], []),
        ([(b"q", b"1"), (b"p", b"2"), (b"p", b"3")], []),  # moved under a new id
        ([(b"q", b"1"), (b"q", b"2"), (b"q", b"1")], ["_floodmark/starts/2.json"]),
        ([(b"q", b"1"), (b"p", b"2"), (b"q", b"3")], ["_floodmark/starts/2.json"]),
    ],
)
def test_starts_that_alternate_are_of_two_writers(ids, found):
    tree = golden("3.5/sales-hdfs") | starts(*ids) | {"_floodmark/starts/9.json": b"["}
    assert [item.path for item in diagnose(tree) if item.rule == "two-writers"] == found


@pytest.mark.parametrize(
    ("note", "found"),
    [
        ({}, ["state"]),
        ({"next_batch": 3}, []),  # a start that has not committed a batch
        ({"tree": packed_tree(of_step("Aggregate", stateful=False))}, []),
        ({"tree": "?"}, []),
        ({"next_batch": None}, []),
    ],
)
def test_a_query_without_state_may_have_none(note, found):
    tree = golden("3.5/sales-hdfs")
    made = example("checkpoint", "state_gone")
    made.damage(tree)
    tree["_floodmark/starts/1.json"] = json.dumps(made.NOTE | note).encode()
    assert [item.path for item in diagnose(tree) if item.rule == "state-gone"] == found


@pytest.mark.parametrize(
    ("content", "side", "found"),
    [(b"v1", True, True), (b"v1\n", True, True), (b"v1\n", False, True), (b"v1", False, False)],
    ids=["cut", "cut after the line", "alone", "as a mend leaves it"],
)
def test_a_list_of_files_that_ends_before_its_first(content, side, found):
    tree = golden("4.1/sales-hdfs")
    entry = max(path for path in tree if path.startswith("sources/0/") and "/." not in path)
    tree[entry] = content
    if not side:
        del tree[f"sources/0/.{entry.rsplit('/', 1)[1]}.crc"]
    rules = {item.rule for item in diagnose(tree, home("4.1/sales-hdfs"))}
    assert ("file-source-log-unreadable" in rules) is found


@pytest.mark.parametrize("name", ["rate", "join-v3"])
def test_what_lies_behind_a_link_is_neither_sound_nor_missing(name, tmp_path):
    """Spark follows links and floodmark does not: every file and folder, one after another."""
    place = tmp_path / "checkpoint"
    golden_tree = golden(f"4.2/{name}")
    for path, data in golden_tree.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    of_spark = ("offsets", "commits", "sources", "state", "metadata")
    everything = [one for one in sorted(place.rglob("*")) if not one.name.endswith(".crc")]
    sound = {finding.rule for finding in floodmark.doctor(place)}
    for one in everything:
        away = one.rename(tmp_path / "elsewhere")
        one.symlink_to(away)
        path = one.relative_to(place).as_posix()
        found = {finding.rule for finding in floodmark.doctor(place)}
        restart = floodmark.inspect(place).restart
        if path.startswith("state"):
            with pytest.raises(CannotRead, match="was not examined"):
                floodmark.read_state(place).rows()
        one.unlink()
        away.rename(one)
        assert path.startswith(of_spark)
        assert found - sound == {"unexamined-part"}, (path, found)
        assert restart.action is not Action.FAIL, (path, restart)
        assert "was not examined" in restart.words or path.startswith(("offsets/", "commits/"))


def test_a_source_that_lost_its_offset_begins_anew():
    """`-` stands for a source that was not read yet: after an offset, it is read again."""
    tree = golden("4.2/union")
    line = tree["offsets/1"].split(b"\n")[2]
    newest = max(int(path[8:]) for path in tree if path[8:].isdigit() and path[:8] == "offsets/")
    entry = f"offsets/{newest}"
    lines = tree[entry].split(b"\n")
    assert line != b"-" != lines[2]
    tree[entry] = b"\n".join([*lines[:2], b"-", *lines[3:]])
    tree.pop(f"offsets/.{newest}.crc", None)
    (found,) = diagnose(tree, home("4.2/union"))
    assert (found.rule, found.path) == ("offsets-backwards", entry)
    assert "begins anew" in found.why


class Closed(HeldFiles):
    """One file that is listed, and that this user may not read."""

    def __init__(self, tree, closed):
        super().__init__(tree)
        self.closed = closed

    def read_many(self, paths):
        error = CannotRead(f"{self.closed}: permission denied", "The storage knows the path.")
        found = super().read_many(paths)
        return {path: error if path == self.closed else data for path, data in found.items()}


@pytest.mark.parametrize("path", ["metadata", "offsets/2", "offsets/1", "commits/2"])
def test_what_may_not_be_read_is_not_damaged(path):
    """Spark may run as another user: the advice was to repair it, or to remove it."""
    evidence = gather(Closed(golden("3.5/sales-hdfs"), path), None)
    assert [(one.rule, one.path) for one in examine(evidence)] == [("unexamined-part", path)]
    assert restart(evidence.checkpoint).action is Action.UNKNOWN
