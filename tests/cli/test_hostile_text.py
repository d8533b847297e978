"""A checkpoint whose every text tries to steer the terminal of whoever looks at it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from floodmark.changes.plan import Plan, Precondition, plan_to_json, seal
from floodmark.changes.plan.steps import DeleteFile
from floodmark.cli.main import run
from floodmark.state.files.compression import compress, decompress
from floodmark.storage.files import open_files
from floodmark.storage.load import load
from test_visible import steering

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2"
EVIL = "\x1b]0;PWNED\x07\x1b[2J\x1b[31mALL SOUND\x1b[0m\r\x9b31m\u202e\u200b\u2028"
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_OLD = 1_700_000_000

Change = Callable[[str], str]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's plan names relative places, too."""
    monkeypatch.chdir(tmp_path)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(*arguments: object, terminal: bool = False) -> str:
    """What a command prints, on stdout and on stderr."""
    out, err = Terminal() if terminal else io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        run([str(one) for one in arguments])
    return out.getvalue() + err.getvalue()


def require_safe(*arguments: object) -> None:
    assert steering(shown(*arguments)) == set(), arguments
    coloured = shown(*arguments, terminal=True)
    assert steering(_COLOUR.sub("", coloured)) == set(), arguments
    assert "\x1b[31mALL" not in coloured, arguments


def reading(cp: Path, other: Path) -> Iterator[tuple[object, ...]]:
    yield from (
        ("inspect", cp),
        ("batches", cp),
        ("offsets", cp),
        ("offsets", cp, "--starting-offsets"),
        ("files", cp),
        ("state", cp),
        ("state", cp, "--stats"),
        ("state", cp, "--changes", "0..1"),
        ("diff", cp, other),
        ("diff", cp, "--batches", "0..1", "--state"),
        ("scan", cp.parent),
        ("doctor", cp),
        ("doctor", cp, "--read-data"),
    )


def planning(cp: Path, new: Path) -> Iterator[tuple[object, ...]]:
    yield from (
        ("upgrade", cp, new),
        ("rewind", cp, "--to-batch", "0"),
        ("copy", cp, new),
        ("copy", cp, new, "--rehome", "/x=/y"),
        ("convert", cp, new, "--provider", "rocksdb"),
        ("repartition", cp, new, "--partitions", "3"),
        ("repair", cp),
        ("compact", cp),
        ("undo", cp),
        ("forget", cp),
        ("backup", cp, new),
    )


def everything(cp: Path, tmp: Path) -> list[tuple[object, ...]]:
    commands = [*reading(cp, tmp / "other"), *planning(cp, tmp / "new")]
    return [*commands, *((*one, "--json") for one in commands)]


def _walk(value: Any, change: Change) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _walk(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_walk(item, change) for item in value]
    return value


def plant(cp: Path, change: Change) -> None:
    """Changes every text of every JSON line in the checkpoint's files."""
    for path in [one for one in cp.rglob("*") if one.is_file() and one.suffix != ".crc"]:
        try:
            lines = path.read_bytes().decode().split("\n")
        except UnicodeDecodeError:
            continue
        for at, line in enumerate(lines):
            with contextlib.suppress(ValueError):
                value = json.loads(line)
                if isinstance(value, dict):
                    lines[at] = json.dumps(_walk(value, change))
        path.write_text("\n".join(lines))
    for path in cp.rglob("*.crc"):
        path.unlink()


def plant_state(cp: Path) -> None:
    """Rows and column names, each as long as before."""
    for path in cp.glob("state/*/*/*.delta"):
        data = decompress(path.read_bytes())
        path.write_bytes(compress(data.replace(b"c", b"\x1b").replace(b"north", b"\x1b[2J\x07")))
    for path in cp.glob("state/*/*/_metadata/schema"):
        data = re.sub(
            rb'"name":"(\w{6,})"',
            lambda match: b'"name":"\\u001b' + match[1][6:] + b'"',
            path.read_bytes(),
        )
        path.write_bytes(data)


def plant_names(cp: Path) -> None:
    for folder in ("", "offsets", "commits", "sources/0", "state/0", "state/0/0"):
        place = cp / folder
        place.mkdir(parents=True, exist_ok=True)
        (place / "\x1b[31mx.delta").write_text("x")
        (place / ".\x1b[2J7.tmp\u202e").write_text("x")
        (place / "line\nfeed").write_text("x")


def plant_own_files(cp: Path, text: str) -> None:
    """Notes, a lease and a journal, as a stranger may leave them."""
    own = cp / "_floodmark"
    note = {
        "floodmark": "start-note",
        "version": 1,
        "salt": text,
        "pipeline": text,
        "sink": text,
        "sink_options": {"path": text, text: text},
        "sources": [{"kind": text, "options": {"path": text}, "schema_ddl": text}],
        "conf": {text: text},
        "output_mode": text,
        "spark_version": text,
    }
    lease = {
        "floodmark": "lease",
        "version": 1,
        "run": text,
        "pipeline": text,
        "host": text,
        "processes": [{"pid": 1, "started": text}],
        "beat": 1,
        "beat_ms": 1,
    }
    plan = seal(
        Plan(
            "rewind",
            text,
            text,
            text,
            (DeleteFile(f"offsets/{text}", text),),
            (Precondition("origin-unchanged", text),),
            "",
            text,
            99,
            notes=(text,),
        )
    )
    journal = {
        "floodmark": "journal",
        "version": 1,
        "stage": "begun",
        "number": 1,
        "after": "",
        "plan": plan_to_json(plan),
    }
    for name, value in (
        ("starts/1.json", note),
        ("lease.json", lease),
        (f"journal/{plan.id}.json", journal),
    ):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(json.dumps(value))


def fork(name: str, tmp: Path) -> Path:
    cp = tmp / "cp"
    shutil.rmtree(cp, ignore_errors=True)
    shutil.copytree(GOLDEN / name / "checkpoint", cp)
    other = tmp / "other"
    if not other.exists():
        shutil.copytree(GOLDEN / "kafka" / "checkpoint", other)
    return cp


def settle(cp: Path) -> None:
    """Nothing in it looks as if a query was writing now."""
    for path in cp.rglob("*"):
        with contextlib.suppress(OSError):
            os.utime(path, (_OLD, _OLD), follow_symlinks=False)


def values_only(text: str) -> str:
    """Leaves what a parser looks for, so that what follows it is read and shown."""
    known = text.startswith(("spark.", "org.apache")) or text in _FIELDS.split()
    return text if known else EVIL


_FIELDS = (
    "id batchWatermarkMs batchTimestampMs conf nextBatchWatermarkMs path timestamp batchId "
    "logOffset operatorInfo operatorId operatorName stateStoreInfo storeName numColsPrefixKey "
    "numPartitions default 0 1 2 3 4 5"
)


@pytest.mark.parametrize("name", ["sales-hdfs", "kafka", "files", "windowed", "join", "delta"])
def test_texts_of_a_checkpoint(name: str, tmp_path: Path) -> None:
    cp = fork(name, tmp_path)
    plant(cp, values_only)
    plant_state(cp)
    settle(cp)
    for command in everything(cp, tmp_path):
        require_safe(*command)


@pytest.mark.parametrize("name", ["sales-hdfs", "kafka"])
def test_names_of_files_and_floodmarks_own(name: str, tmp_path: Path) -> None:
    cp = fork(name, tmp_path)
    plant_names(cp)
    settle(cp)
    for command in everything(cp, tmp_path):
        require_safe(*command)
    plant_own_files(cp, EVIL)
    settle(cp)
    for command in everything(cp, tmp_path):
        require_safe(*command)


def test_the_row_that_it_shows_is_still_told(tmp_path: Path) -> None:
    cp = fork("sales-hdfs", tmp_path)
    plant(cp, lambda text: EVIL if "-" in text else text)  # the query's id
    plant_state(cp)
    settle(cp)
    assert "\\x1b]0;PWNED" in shown("inspect", cp)
    assert json.loads(shown("inspect", cp, "--json"))["query_id"] == EVIL  # JSON is exact
    assert "\\x1b" in shown("state", cp)


def test_html_of_a_notebook(tmp_path: Path) -> None:
    cp = fork("sales-hdfs", tmp_path)
    plant(cp, lambda text: f"<script>{EVIL}" if "-" in text else text)
    html = load(open_files(str(cp)))._repr_html_()
    assert steering(html) == set()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_a_strangers_plan_and_repository(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    step = DeleteFile(EVIL, EVIL)
    fields = ("rewind", EVIL, EVIL, EVIL, (step,), (), "", EVIL, 1)
    plan.write_text(json.dumps(plan_to_json(seal(Plan(*fields)))))
    require_safe("apply", plan)
    plan.write_text(json.dumps({"floodmark": "plan", "made_by": EVIL}))
    require_safe("apply", plan)
    plan.write_text(EVIL)
    require_safe("apply", plan)
    repository = tmp_path / "repo"
    shown("backup", GOLDEN / "kafka" / "checkpoint", repository, "--execute")
    for path in repository.rglob("*.json"):
        value = json.loads(path.read_text())
        path.write_text(
            json.dumps({key: EVIL if key == "location" else item for key, item in value.items()})
        )
    require_safe("backup", repository, "--list")
    require_safe("backup", repository, "--check")
    require_safe("restore", repository, tmp_path / "back")


def test_code_and_arguments(tmp_path: Path) -> None:
    code = tmp_path / "\x1b[2Jcode.py"
    code.write_text(f"df.writeStream.option('checkpointLocatoin', {EVIL!r}).start()\n")
    for form in ((), ("--json",), ("--format", "github"), ("--format", "sarif")):
        require_safe("lint", code, *form)
    require_safe("inspect", tmp_path / EVIL)
    require_safe(EVIL)
    require_safe("inspect", "--batch", EVIL)
    require_safe("inspect", tmp_path, EVIL)
    require_safe("explain", EVIL)


@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    name=st.sampled_from(["sales-hdfs", "kafka", "files", "union", "rate", "offsets-v2"]),
    hostile=st.text(st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Lu"]), min_size=1),
    seed=st.integers(0, 2**32),
)
def test_any_hostile_text_in_any_field(name: str, hostile: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    rate = chance.choice((0.02, 0.2, 0.8))
    cp = fork(name, tmp_path)
    plant(cp, lambda text: text + hostile if chance.random() < rate else text)
    if chance.random() < 0.3:
        plant_own_files(cp, hostile)
    settle(cp)
    for command in chance.sample(everything(cp, tmp_path), 4):
        assert steering(shown(*command)) == set(), command


FORGED = "\n::error::PWNED"


@pytest.mark.parametrize("name", ["sales-hdfs", "kafka", "files", "join", "delta", "union"])
@pytest.mark.parametrize("own", [False, True])
def test_no_text_begins_a_line_of_its_own(name: str, own: bool, tmp_path: Path) -> None:
    """A forged line looks like floodmark's own, or is a command to GitHub's runner."""
    cp = fork(name, tmp_path)
    plant(cp, lambda text: FORGED if values_only(text) == EVIL else text)
    if own:
        plant_own_files(cp, FORGED)
    settle(cp)
    for command in [*reading(cp, tmp_path / "other"), *planning(cp, tmp_path / "new")]:
        lines = shown(*command).splitlines()
        assert [one for one in lines if one.lstrip().startswith("::")] == [], command
