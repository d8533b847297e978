"""Whatever stands in a checkpoint or a file of code, judging it ends, and with findings alone."""

from __future__ import annotations

import random

import pytest

from floodmark.rules.code.reading import read_code
from floodmark.rules.lint import judge
from floodmark.state.files.compression import compress
from floodmark.state.files.javadata import encode_utf
from rules.examples import BROKEN, diagnose, golden


def rules_of(tree):
    return {item.rule for item in diagnose(tree)}


def test_wild_numbers_in_names_cost_nothing():
    tree = golden("3.5/sales-hdfs")
    wild = "999999999999999999"
    for log in ("offsets", "commits"):
        tree[f"{log}/{wild}"] = tree[f"{log}/2"]
    tree[f"state/0/{wild}/1.delta"] = b""
    tree[f"sources/0/{wild}"] = b"v1"
    found = diagnose(tree)
    assert {"offset-gap", "state-version-missing"} <= {item.rule for item in found}
    assert len(found) < 1_000


def test_a_wild_partition_count_is_not_counted_up_to():
    tree = golden("3.5/sales-hdfs")
    for batch in range(3):
        tree[f"offsets/{batch}"] = tree[f"offsets/{batch}"].replace(
            b'"spark.sql.shuffle.partitions":"2"', b'"spark.sql.shuffle.partitions":"999999"'
        )
    found = [item for item in diagnose(tree) if item.rule == "state-version-missing"]
    assert 0 < len(found) < 1_000


@pytest.mark.parametrize(
    "line",
    [
        '{"logOffset":"x"}',
        '{"reservoirId":1,"reservoirVersion":null}',
        '{"t":{"0":1e400}}',
        "{}",
        "[]",
        "-",
        "9" * 5_000,
        '{"a":' * 2_000 + "1" + "}" * 2_000,
    ],
)
def test_any_offset_text(line):
    tree = golden("3.5/rate")
    for batch in (1, 2):
        head = tree[f"offsets/{batch}"].split(b"\n")[:2]
        tree[f"offsets/{batch}"] = b"\n".join([*head, line.encode()])
    assert "metadata-missing" not in rules_of(tree)


def test_a_changelog_of_a_later_version_is_a_finding():
    tree = golden("4.3/join-v4")
    path = "state/0/0/4.changelog"
    tree[path] = compress(encode_utf("v9"))
    found = [item for item in diagnose(tree, share=1.0) if path in item.what]
    assert any("'v9'; this floodmark reads up to 'v4'" in item.what for item in found)


def test_any_bytes_in_any_file():
    chance = random.Random(8)
    noticed = 0
    for name in ("3.5/files", "4.0/transform-with-state", "4.1/sales-format-2", "3.5/dstreams"):
        for _ in range(15):
            tree = golden(name)
            for path in chance.sample(sorted(tree), 3):
                tree[path] = chance.randbytes(chance.randrange(200))
            noticed += bool(rules_of(tree))
    # Not all: a file that Spark does not need either may hold anything.
    assert noticed > 40


def test_any_text_in_code():
    chance = random.Random(9)
    for path in sorted((BROKEN / "pipeline").glob("*.py")):
        text = path.read_text()
        for _ in range(40):
            at, size = chance.randrange(len(text)), chance.randrange(1, 60)
            changed = text[:at] + chance.choice(["", "(", ")", ".", "\n", "x"]) + text[at + size :]
            assert isinstance(judge([read_code("a.py", changed)]), tuple)


def test_names_that_are_made_of_themselves_end():
    text = "checkpoint = checkpoint + other\nother = checkpoint.join(other)\n"
    text += "w = w.writeStream.option('checkpointLocation', checkpoint)\nw = w.start()\n"
    text += "def f():\n    g = f2\n    f2 = g\n    g.writeStream.option(*a, **k).start(**z)\n"
    assert isinstance(judge([read_code("a.py", text * 30)]), tuple)
