"""The rules as a whole: codes, names, words, pages and the scaffold."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from floodmark import api
from floodmark.errors import WrongUse
from floodmark.rules.registry import FAMILIES, all_rules, rules_of
from project_scripts import script

ROOT = Path(__file__).resolve().parents[2]


def test_codes_and_names_are_unique_and_in_their_hundred():
    rules = [known.rule for known in all_rules()]
    assert len({rule.code for rule in rules}) == len({rule.name for rule in rules}) == len(rules)
    for family, digit in (
        ("checkpoint", "1"),
        ("pipeline", "2"),
        ("compatibility", "3"),
        ("start", "4"),
    ):
        assert all(known.rule.code.startswith(f"FM{digit}") for known in rules_of(family))


def test_a_rules_file_is_named_after_it():
    for family in FAMILIES:
        package = importlib.import_module(f"floodmark.rules.{family}")
        for module in pkgutil.iter_modules(package.__path__):
            loaded = importlib.import_module(f"{package.__name__}.{module.name}")
            assert loaded.RULE.name.replace("-", "_") == module.name


@pytest.mark.parametrize("known", all_rules(), ids=lambda known: known.rule.name)
def test_every_story_is_told_whole(known):
    rule = known.rule
    for words in (rule.finds, rule.matters, rule.restart):
        assert words.endswith("."), words
        assert "  " not in words
    assert rule.instead


def test_explain_takes_a_code_or_a_name_and_helps_with_a_wrong_one():
    assert api.explain("fm101") == api.explain("commit-without-offset")
    assert len(api.explain()) == len(all_rules())
    with pytest.raises(WrongUse) as error:
        api.explain("comit-without-offset")
    assert "commit-without-offset" in error.value.why


def test_the_pages_are_current():
    assert script("rule_docs").stale() == []


@pytest.mark.parametrize("family", ["checkpoint", "pipeline", "compatibility", "start"])
def test_the_scaffold_makes_a_rule_that_loads(tmp_path, family):
    rule, example = script("new_rule").begin("water-in-the-cellar", family, tmp_path)
    assert rule.name == example.name == "water_in_the_cellar.py"
    spec = importlib.util.spec_from_file_location("water_in_the_cellar", rule)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.RULE.name == "water-in-the-cellar"
    assert module.RULE.code not in {known.rule.code for known in all_rules()}
    assert list(module.check(None)) == []


def test_the_scaffold_refuses_a_name_that_is_taken_or_odd(tmp_path):
    begin = script("new_rule").begin
    for name in ("commit-without-offset", "Odd", "one"):
        with pytest.raises(ValueError, match=r"hyphens|already"):
            begin(name, "checkpoint", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_judging_loads_neither_spark_nor_the_state_readers():
    code = (
        "import sys; from floodmark import api; "
        "api.lint([sys.argv[1]]); api.doctor(sys.argv[2]); "
        "print(sorted({'pyspark', 'numpy', 'pyarrow', 'fsspec'} & set(sys.modules)))"
    )
    golden = ROOT / "tests/golden/3.5/sales-rocksdb/checkpoint"
    done = subprocess.run(
        [sys.executable, "-c", code, __file__, str(golden)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
