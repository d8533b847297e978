"""The house: what architecture.md names is there, a class name means one thing, rooms are small."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from pathlib import Path

import pytest

from floodmark.connectors.registry import kinds
from floodmark.connectors.sink_memory import FILE_SINK

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "floodmark"
# A rule a file, a verb a file: there the tree itself is the map.
LISTS = {"cli", "rules/checkpoint", "rules/compatibility", "rules/pipeline"}
MOST_MODULES = 25
# What a kind of source or sink is asked stands in connectors/. A comparison with a kind's name
# elsewhere is here for a reason: the option, rule or file is that kind's own.
KINDS_BY_NAME = {
    "engine/bisect/records.py": "records of Kafka are told by topic, partition and offset",
    "drills/advice.py": "what mends a sink depends on what it is",
    "engine/drill/child.py": "a socket has no end",
    "engine/drill/drilled_run.py": "where a sink's own log is",
    "engine/drill/sink_rows.py": "where a table's own log is",
    "engine/drill/samples/sampled_sources.py": "which sample stands in for a source, by format()",
    "engine/drill/doors/spark_doors.py": "the Python package delta",
    "engine/pipelines/start_positions.py": "a start file names its sources by kind",
    "engine/spark/session.py": "Delta's jars need settings of the session",
    "engine/app/effects/spark_writes.py": "the Python package delta",
    "engine/state/bootstrap.py": "Kafka's position is an option of bootstrap",
    "rules/compatibility/output_columns_changed.py": "Delta's mergeSchema",
    "rules/compatibility/sink_changed.py": "what Spark's own Kafka sink accepts",
    "rules/pipeline/non_replayable_source.py": "lint reads format() in code",
    "rules/pipeline/starting_offsets_unsaid.py": "lint reads format() in code",
    "rules/start/kafka_topic_missing.py": "a rule about Kafka",
    "rules/start/kafka_unreachable.py": "a rule about Kafka",
    "rules/start_inputs/table.py": "what the rules about Delta are given",
    "rules/start_inputs/topic.py": "what the rules about Kafka are given",
    "rules/code/facts.py": "lint reads format() in code",
    # Words that happen to be a kind's name.
    "changes/read_data.py": "a state file's kind, .delta",
    "limits.py": "a limit called memory",
    "state/files/soundness.py": "a state file's kind, .delta",
    "storage/remote.py": "fsspec's memory:// and file",
}

# Stems of several names, and why a reader does not take them for each other.
ONE_STEM = {
    "plan": "a planner makes a plan",
    "pipelin": "lint calls its family of rules pipeline, and engine/pipelines runs them",
    "offset": "the folder of a checkpoint is called offsets, and so is the verb",
}
SETTING_OR_FILE = re.compile(
    r"spark(?!\.log)(\.\w+)+|kafka\.bootstrap\.servers|_spark_metadata|_metadata|_stateSchema|_delta_log"
    r"|\.crc|\w+\.jsonl"
)
ENDING = re.compile(r"(?<=\w{3})(ing|ed|er|e|s)$")


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def test_the_first_line_of_every_module_says_what_it_does() -> None:
    """A sentence that ends on that line: a search over first lines is a map of the house."""
    firsts = {path: (ast.get_docstring(ast.parse(path.read_text())) or "") for path in modules()}
    assert [
        str(path.relative_to(SOURCE))
        for path, text in firsts.items()
        if not re.fullmatch(r".{20,}[.?]", (text.splitlines() or [""])[0])
    ] == []


def test_every_module_that_the_architecture_names_is_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text))
    assert len(named) > 40
    assert [name for name in sorted(named) if not (SOURCE / name).exists()] == [
        name for name in sorted(named) if (ROOT / name).exists()
    ]


def test_a_class_name_means_one_thing() -> None:
    places = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(SOURCE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def stem(name: str) -> str:
    """`rewind`, `rewinding`, `rewinder`, `rewinders` and `rewinds` have one stem."""
    while (shorter := ENDING.sub("", name)) != name:
        name = shorter
    return name[:-1] if name[-2:-1] == name[-1:] else name  # running, run


def test_names_that_differ_only_in_their_ending_have_one_stem() -> None:
    assert len({stem(name) for name in ("rewind", "rewinding", "rewinds", "rewinders")}) == 1
    assert stem("plan") == stem("planner") == stem("planning")
    assert stem("store") == stem("stores") == stem("stored") != stem("story")
    assert stem("group") != stem("run")


def test_no_two_names_differ_only_in_their_ending() -> None:
    """Modules and rooms of the whole tree; a room may have the plural of what is in it. A verb's
    file in cli/ has its function's module in api/, which cannot have the function's own name:
    api/ is not held against the others.
    """
    modules_of, rooms_of = defaultdict(set), defaultdict(set)
    for path in SOURCE.rglob("*"):
        name = path.stem
        if path.relative_to(SOURCE).parts[0] == "api":
            continue
        if (path / "__init__.py").exists():
            rooms_of["_".join(map(stem, name.split("_")))].add(name)
        elif path.suffix == ".py" and not name.startswith("__"):
            modules_of["_".join(map(stem, name.split("_")))].add(name)
    confusing = set()
    for one in {*modules_of, *rooms_of}:
        found = modules_of[one]
        found |= {room for room in rooms_of[one] if not {room, room.removesuffix("s")} & found}
        if len(found) > 1:
            confusing.add(one)
    assert confusing == ONE_STEM.keys()


def test_a_folder_with_many_modules_has_rooms() -> None:
    counts = {
        str(folder.relative_to(SOURCE)): len(list(folder.glob("*.py")))
        for folder in SOURCE.rglob("*")
        if folder.is_dir()
    }
    large = {folder: count for folder, count in counts.items() if count > MOST_MODULES}
    assert set(large) <= LISTS, large


def test_every_module_says_first_what_it_does() -> None:
    silent = [
        str(path.relative_to(SOURCE))
        for path in modules()
        if not (ast.get_docstring(ast.parse(path.read_text())) or "").strip()
    ]
    assert silent == []


def test_no_chain_of_kinds_outside_of_connectors() -> None:
    names = {kind.name for kind in kinds()} | {FILE_SINK}
    found = set()
    for path in modules():
        place = str(path.relative_to(SOURCE))
        if place.startswith("connectors/"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            asked = isinstance(node, ast.Compare) or (
                isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".of_kind")
            )
            if asked and names & {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)}:
                found.add(place)
    assert found == KINDS_BY_NAME.keys()


def test_only_rules_know_their_codes() -> None:
    """Others ask for a rule's mend or for the rule itself: a code may come and go."""
    named = {
        str(path.relative_to(SOURCE)): re.findall(r"FM\d{3}", path.read_text())
        for path in modules()
        if "rules" not in path.relative_to(SOURCE).parts
    }
    assert {path: codes for path, codes in named.items() if codes} == {}


def test_every_mend_is_offered_and_carried_out() -> None:
    from floodmark.rules.mend import Mend
    from floodmark.rules.registry import rules_of

    offered = {mend for known in rules_of("checkpoint") for mend in known.rule.mends}
    assert offered == set(Mend)
    repair = "".join(
        path.read_text()
        for path in (
            *(SOURCE / "changes/repair").glob("*.py"),
            SOURCE / "changes/planners/repair.py",
        )
    )
    assert [mend.name for mend in Mend if f"Mend.{mend.name}" not in repair] == []


def test_a_setting_or_a_file_that_several_modules_name_has_one_name() -> None:
    """Words for people may name a setting; what is compared or looked up is a constant."""
    places = defaultdict(set)
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for part in node.value.split("/"):
                    if SETTING_OR_FILE.fullmatch(part):
                        places[part].add(str(path.relative_to(SOURCE)))
    # The demo is as a user would write it; the others stand below the checkpoint's names.
    own = {"engine/demo/application.py", "engine/demo/oracle.py"}
    own |= {"limits.py", "redaction.py", "secret_text.py"}
    own.add("engine/bisect/records.py")  # the hidden column of a file source is called _metadata
    repeated = {key: found - own for key, found in places.items() if len(found - own) > 1}
    assert repeated == {}


def test_a_planner_is_given_what_it_reads_and_nothing_to_write_with() -> None:
    """`Files` has no method that changes anything: mypy proves the rest."""
    planning = [
        path
        for folder in ("planners", "carry", "matching", "repair", "sinks")
        for path in (SOURCE / "changes" / folder).glob("*.py")
    ]
    assert len(planning) > 30
    named = {
        str(path.relative_to(SOURCE)): sorted(
            {"WritableFiles", "open_files"} & set(re.findall(r"\w+", path.read_text()))
        )
        for path in planning
    }
    assert {path: names for path, names in named.items() if names} == {}
    from floodmark.storage.files import Files, WritableFiles

    writing = {"write", "put", "create", "delete"}
    assert not writing & set(dir(Files))
    assert writing <= set(dir(WritableFiles))


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in (ROOT / "tests" / "services").glob("*.py"))
)
def test_every_server_of_the_tests_can_be_imported(name: str) -> None:
    """Fixtures import them late: else only tests with servers would see a wrong name."""
    if name != "leash":  # a program, not a module
        importlib.import_module(f"services.{name}")
