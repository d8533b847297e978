"""Every lint rule finds the lines marked `# bad` in its example, and nothing else there."""

from __future__ import annotations

import json
import sys

import pytest

from floodmark import api
from floodmark.rules.registry import rules_of
from rules.examples import BROKEN

RULES = [known.rule for known in rules_of("pipeline")]
EXAMPLES = BROKEN / "pipeline"


def found_in(path):
    return [(item.rule, item.line) for item in api.lint([str(path)])]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_finds_the_bad_lines_and_no_others(rule):
    path = EXAMPLES / f"{rule.name.replace('-', '_')}.py"
    bad = [
        number
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.endswith("# bad")
    ]
    assert bad
    assert sorted(found_in(path)) == [(rule.name, line) for line in bad]


def test_every_rule_has_one_example():
    assert {path.stem.replace("_", "-") for path in EXAMPLES.glob("*.py")} == {
        rule.name for rule in RULES
    }


def test_two_files_that_share_an_absolute_checkpoint(tmp_path):
    line = (
        "spark.readStream.text('in').writeStream.option('checkpointLocation', {!r}).start({!r})\n"
    )
    for name, checkpoint in (("a", "/ck"), ("b", "/ck"), ("c", "ck"), ("d", "ck")):
        (tmp_path / f"{name}.py").write_text(line.format(checkpoint, f"/out/{name}"))
    # Two versions of one query: both have its checkpoint and its output.
    for name in ("old", "new"):
        (tmp_path / f"{name}.py").write_text(line.format("/ck2", "/out"))
    found = [(item.rule, item.path.rsplit("/", 1)[1]) for item in api.lint([str(tmp_path)])]
    assert found == [("shared-checkpoint", "b.py")]


def test_a_path_without_a_scheme_is_no_local_disk_on_databricks(tmp_path):
    path = tmp_path / "job.py"
    write = (
        "spark.readStream.text('in').writeStream.option('checkpointLocation', {!r}).start('o')\n"
    )
    path.write_text(write.format("/home/me/ck") + write.format("file:/data/ck"))
    assert [item.line for item in api.lint([str(path)])] == [1, 2]
    path.write_text(
        "# Databricks notebook source\n"
        + write.format("/home/me/ck")
        + write.format("file:/data/ck")
        + write.format("file:/Volumes/lake/ck")
    )
    assert [(item.rule, item.line) for item in api.lint([str(path)])] == [
        ("checkpoint-on-local-disk", 3)
    ]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12 reads it")
def test_the_syntax_of_a_later_python_is_advice(tmp_path):
    path = tmp_path / "later.py"
    path.write_text("print(f\"{'\\n'}\")\n")
    (finding,) = api.lint([str(path)])
    assert (finding.rule, finding.severity.value) == ("not-python", "advice")
    assert "cannot read this file" in finding.what


def notebook(*cells, indent=1):
    return json.dumps(
        {
            "cells": [
                {"cell_type": "code", "source": source, "outputs": [], "metadata": {}}
                for source in cells
            ],
            "nbformat": 4,
        },
        indent=indent,
    )


def test_a_notebook_is_read_with_its_magics_and_its_own_lines(tmp_path):
    text = notebook(
        ["%pip install pyspark\n", "frame = spark.readStream.text('in')"],
        ["%%sql\n", "SELECT broken python"],
        ["!rm -rf /data/checkpoints/orders\n", "out = frame.writeStream.format('console')\n"],
        ["out.option('checkPoint', 'x').start()  # été"],
    )
    path = tmp_path / "n.ipynb"
    path.write_text(text)
    found = api.lint([str(path)])
    assert [item.rule for item in found] == [
        "misspelt-checkpoint-option",
        "checkpoint-deleted-by-code",
    ]
    lines = text.splitlines()
    assert "checkPoint" in lines[found[0].line - 1]
    assert "rm -rf" in lines[found[1].line - 1]


def test_a_notebook_in_another_language_is_passed_over(tmp_path):
    path = tmp_path / "n.ipynb"
    scala = json.loads(notebook(["val stream = spark.readStream // 'text'"]))
    path.write_text(json.dumps(scala | {"metadata": {"kernelspec": {"language": "scala"}}}))
    assert api.lint([str(path)]) == ()
    path.write_text(json.dumps(scala | {"metadata": {"language_info": {"name": "python"}}}))
    assert [item.rule for item in api.lint([str(path)])] == ["not-python"]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.py", b"\xff\xfe\x00", "not text"),
        ("a.py", b"x = (\n", "never closed"),
        ("a.py", b"x = 1\0", "null"),
        ("a.py", b"(" * 500 + b")" * 500, ""),
        ("a.ipynb", b"{]", "not a notebook"),
        ("a.ipynb", b"[1]", "no cells"),
        ("a.txt", b"dear stream\n", "syntax"),
        ("a.py", b"checkpoint = " + b"-" * 100_000 + b"1", ""),
    ],
)
def test_what_is_not_python_is_said_to_be_so(tmp_path, name, data, words):
    path = tmp_path / name
    path.write_bytes(data)
    (finding,) = api.lint([str(path)])
    assert finding.rule == "not-python"
    assert words in finding.what


def test_other_peoples_folders_are_passed_over(tmp_path):
    for folder in (".venv", "node_modules", "__pycache__"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "bad.py").write_text("(")
    assert api.lint([str(tmp_path)]) == ()


def test_encodings_and_line_ends_are_pythons(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes("# coding: latin-1\r\nname = 'é'\r\nx = (\r\n".encode("latin-1"))
    (finding,) = api.lint([str(path)])
    assert finding.line == 3


def test_a_notebook_may_start_one_query_again(tmp_path):
    cell = (
        "spark.readStream.table('in').writeStream"
        ".option('checkpointLocation', '/ck').toTable({!r})\n"
    )
    path = tmp_path / "n.ipynb"
    path.write_text(notebook([cell.format("counts")], [cell.format("counts")]))
    assert api.lint([str(path)]) == ()
    path.write_text(notebook([cell.format("counts")], [cell.format("sums")]))
    assert [item.rule for item in api.lint([str(path)])] == ["shared-checkpoint"]


def test_an_f_string_that_this_python_cannot_write_again_is_no_trouble(tmp_path):
    path = tmp_path / "job.py"
    # A control character inside the braces: before Python 3.12, ast.unparse cannot write it.
    name = "f'{names[\"a\x01b\"]}'"
    path.write_text(
        "spark.readStream.text('in').writeStream"
        f".option('checkpointLocation', places[{name}]).start('out')\n"
    )
    assert api.lint([str(path)]) == ()
