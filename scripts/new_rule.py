"""Begins a rule: its file and its broken example. `python scripts/new_rule.py NAME [FAMILY]`.

NAME is the bad thing, in words with hyphens: `orphan-side-file`. FAMILY is checkpoint,
compatibility, start or, if it is left out, pipeline: a rule of lint. The example fails its test
until the rule is written.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from floodmark.rules.registry import all_rules, rules_of

ROOT = Path(__file__).resolve().parents[1]
_FAMILIES = {
    "checkpoint": ("Evidence", "evidence"),
    "pipeline": ("Code", "code"),
    "compatibility": ("Comparison", "comparison"),
    "start": ("Situation", "situation"),
}
_FOUND = {
    "checkpoint": "Finding",
    "pipeline": "Finding",
    "compatibility": "Reason",
    "start": "Finding",
}
_IMPORTS = {
    "checkpoint": """from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity""",
    "pipeline": """from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity""",
    "compatibility": """from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason""",
    "start": """from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation""",
}
_RULE = '''"""{title}."""

from __future__ import annotations

from collections.abc import Iterator

{imports}

RULE = Rule(
    "{code}",
    "{name}",
    Severity.WARNING,
    finds="{title}.",
    matters="Why it hurts.",
    restart="What Spark does when the query starts like this.",
    instead="What to do.",
)


def check({argument}: {kind}) -> Iterator[{found}]:
    yield from ()
'''
_EXAMPLES = {
    "checkpoint": """from broken.damage import Tree, drop

FROM = "3.5/sales-hdfs"


def damage(tree: Tree) -> None:
    drop(tree, "metadata")
""",
    "pipeline": """from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id STRING").json("s3://lake/orders")
orders.writeStream.format("console").start()  # bad
""",
    "compatibility": """from broken.meeting import meeting

MEETING = meeting(new={"output_mode": "Complete"})
""",
    "start": """from broken.starting import situation

SITUATION = situation(master="yarn")
""",
}


def begin(name: str, family: str, root: Path = ROOT) -> list[Path]:
    """Writes the two files; raises ValueError where the name does not do."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name):
        raise ValueError(f"{name!r}: words with hyphens, such as orphan-side-file")
    if any(known.rule.name == name for known in all_rules()):
        raise ValueError(f"{name} is there already")
    kind, argument = _FAMILIES[family]
    number = max(int(known.rule.code[2:]) for known in rules_of(family)) + 1
    title = name.replace("-", " ").capitalize()
    module = name.replace("-", "_")
    texts = {
        root / "src/floodmark/rules" / family / f"{module}.py": _RULE.format(
            title=title,
            imports=_IMPORTS[family],
            code=f"FM{number}",
            name=name,
            argument=argument,
            kind=kind,
            found=_FOUND[family],
        ),
        root / "tests/broken" / family / f"{module}.py": _EXAMPLES[family],
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(texts)


def main() -> int:
    arguments = sys.argv[1:]
    if not arguments:
        print(__doc__)
        return 2
    family = arguments[1] if len(arguments) > 1 else "pipeline"
    if family not in _FAMILIES:
        print(f"{family!r}: {', '.join(_FAMILIES)}")
        return 2
    try:
        made = begin(arguments[0], family)
    except ValueError as error:
        print(error)
        return 2
    for path in made:
        print(path.relative_to(ROOT))
    print("Write the rule and its example, then: python scripts/rule_docs.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
