"""The house: what architecture.md names is there, a class name means one thing, rooms are small."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "floodmark"
# A rule a file, a verb a file: there the tree itself is the map.
LISTS = {"cli", "rules/checkpoint", "rules/compatibility", "rules/pipeline"}
MOST_MODULES = 25


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


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
