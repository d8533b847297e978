"""The documents are true: their commands run in the order in which they stand, their links lead
somewhere, what is made from the code is current, and the site builds without a warning.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import click
import pytest

import samples
from demonstration import MAIN, Demo
from floodmark.cli.main import VERBS, floodmark, run

ROOT = Path(__file__).parents[1]
SITE = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [ROOT / "README.md", *SITE]
GOLDEN = ROOT / "tests" / "golden" / "4.2" / "sales-hdfs" / "checkpoint"
KNOWN = {verb for group in VERBS.values() for verb in group}
STARTS_SPARK = {
    *("run", "demo", "check", "migrate", "bootstrap", "leave-dstreams", "replay", "compare"),
    "drill",
}
# What a reader has elsewhere, or what goes on until it is stopped. Tests of their own run these.
ELSEWHERE = {
    "broker:9092": "asks a Kafka: tests/integration",
    "s3://": "asks S3: tests/integration",
    "floodmark serve": "serves until it is stopped: tests/web",
    "spark-pipeline.yml": "a declarative pipeline: tests/integration/test_declarative_pipelines.py",
    "pip install": "tests/release",
    "make ": "tests/test_readme.py",
    "man ": "a pager",
    "scripts/lint_precision.py": "asks for a corpus: tests/rules/test_lint_rules.py",
    "spark-submit": "tests/engine",
}


def _commands() -> list[tuple[str, str]]:
    """(where, command line) of every `$ …` in a console block, in the order of the page."""
    found = []
    for document in DOCUMENTS:
        blocks = re.finditer(r"^( *)```console\n(.*?)^ *```", document.read_text(), re.M | re.S)
        for block in blocks:
            joined = textwrap.dedent(block[2]).replace("\\\n", " ")
            for line in joined.splitlines():
                if line.startswith("$ "):
                    found.append((str(document.relative_to(ROOT)), line[2:].strip()))
    return found


EVERY = _commands()
COMMANDS = [
    (document, command.split(" | ")[0].split(" > ")[0].split("  # ")[0].strip())
    for document, command in EVERY
    if command.startswith("floodmark ")
]
PAGES = sorted({document for document, _ in EVERY})


def test_there_are_commands_to_try() -> None:
    assert len(COMMANDS) > 100


@pytest.mark.parametrize(("document", "command"), COMMANDS, ids=[c for _, c in COMMANDS])
def test_a_documented_command_is_a_valid_one(
    document: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data" / "demo").mkdir(parents=True)  # a plan is saved there
    monkeypatch.chdir(tmp_path)
    _, *arguments = shlex.split(command)
    context = click.Context(floodmark)
    name, *rest = arguments
    if name in ("--help", "-h", "--version"):
        return
    verb = floodmark.get_command(context, name)
    assert verb is not None, f"{document} shows `floodmark {name}`, which is no verb"
    if "--help" not in rest:
        # Parses the options and arguments, and runs nothing.
        verb.make_context(name, list(rest), parent=context)


def prepared(folder: Path) -> Path:
    """A folder with the places that the documents name."""
    samples.write(folder / "data/checkpoints/sales", samples.sales(60))
    for name, golden in (("orders", "kafka"), ("union", "union")):
        place = GOLDEN.parents[1] / golden / "checkpoint"
        shutil.copytree(place, folder / "data" / "checkpoints" / name)
    samples.write(folder / "data/checkpoints/files", samples.file_stream())
    for name in ("data/checkpoints/totals", "data/old-checkpoint"):
        shutil.copytree(GOLDEN, folder / name)
    damaged = shutil.copytree(GOLDEN, folder / "data/checkpoints/damaged")
    newest = max((damaged / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.write_text("")
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
    for path in sorted((folder / "data").rglob("*")):
        os.utime(path, (1_700_000_000, 1_700_000_000))  # no query runs on them
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "tests").symlink_to(ROOT / "tests")
    (folder / "sales.py").write_text(SALES)
    (folder / "streams").mkdir()
    return folder


SALES = """
from floodmark import pipeline
from pyspark.sql import functions as F

@pipeline(checkpoint="data/checkpoints/totals", conf={"spark.sql.shuffle.partitions": 2})
def totals(spark, start):
    schema = "transactionId STRING, customerId STRING, itemId STRING, amountPaid DOUBLE"
    rows = spark.readStream.schema(schema).json("data/in")
    sums = rows.groupBy("customerId").agg(F.sum("amountPaid"), F.count("*"))
    return sums.writeStream.outputMode("complete").format("memory").queryName("totals").trigger(
        availableNow=True
    )
"""


def is_elsewhere(command: str) -> bool:
    return any(part in command for part in ELSEWHERE)


def starts_spark(command: str) -> bool:
    if not command.startswith("floodmark "):
        return False
    _, verb, *arguments = shlex.split(command)
    return verb in STARTS_SPARK or (verb in ("inspect", "state") and "--trust" in arguments)


def asks_for_the_demo(command: str) -> bool:
    return "data/demo" in command or "data/orders" in command


@pytest.mark.parametrize("document", [page for page in PAGES if page != "README.md"])
def test_a_page_can_be_followed(
    document: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without what starts Spark: see test_a_page_that_starts_spark_can_be_followed."""
    monkeypatch.setattr("floodmark.changes.in_use._movement", lambda *_: None)
    monkeypatch.chdir(prepared(tmp_path))
    for where, command in EVERY:
        if where != document or starts_spark(command) or asks_for_the_demo(command):
            continue
        if not is_elsewhere(command):
            program, *arguments = shlex.split(re.split(r" [|>] ", command)[0])
            assert program == "floodmark", command
            status = run(arguments)
            assert status in (0, 1), f"{command}\n{capsys.readouterr().err}"


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_the_tutorial_can_be_followed(demo: Demo) -> None:
    assert demo.status == 0, demo.err
    chosen = [command for page, command in EVERY if page == "docs/tutorial.md"][1:]
    assert len(chosen) > 10
    follow(chosen, demo.cwd, {"floodmark check": 1})


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("document", ["docs/how-to/changed-logic.md", "docs/how-to/new-spark.md"])
def test_a_page_that_starts_spark_can_be_followed(document: str, tmp_path: Path) -> None:
    folder = prepared(tmp_path)
    with_a_stream_of_its_own(folder)
    chosen = [command for page, command in EVERY if page == document and starts_spark(command)]
    assert chosen
    follow(chosen, folder, {"floodmark check": 1})


def with_a_stream_of_its_own(folder: Path) -> None:
    """`totals` is the checkpoint of an earlier sales.py, which had no count."""
    shutil.rmtree(folder / "data/checkpoints/totals")
    (folder / "data/in").mkdir()
    sale = {"transactionId": "1", "customerId": "1", "itemId": "7", "amountPaid": 20.5}
    (folder / "data/in/0.json").write_text(json.dumps(sale))
    (folder / "sales.py").write_text(SALES.replace(', F.count("*")', ""))
    follow(["floodmark run sales.py"], folder, {})
    (folder / "sales.py").write_text(SALES)


def follow(commands: list[str], folder: Path, ends: dict[str, int]) -> None:
    """Each ends as the page says: with 0, but for those whose answer is no there."""
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", f'floodmark() {{ "{sys.executable}" -c "{MAIN}" "$@"; }}; {command}'],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=480,
            check=False,
        )
        wanted = next((end for start, end in ends.items() if command.startswith(start)), 0)
        assert done.returncode in (0, wanted), f"{command}\n{done.stdout}\n{done.stderr}"


def test_every_verb_is_documented() -> None:
    text = "\n".join(document.read_text() for document in DOCUMENTS)
    missing = [verb for verb in KNOWN if not re.search(rf"floodmark {verb}\b|`{verb}`", text)]
    assert missing == []


def test_what_is_recommended_is_a_verb_with_its_options() -> None:
    context = click.Context(floodmark)
    options = {
        verb: {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        for verb in KNOWN
        if (command := floodmark.get_command(context, verb)) is not None
    }
    unknown = []
    for text in (*DOCUMENTS, *(ROOT / "src").rglob("*.py")):
        # A string may go on in the next line of the source.
        joined = re.sub(r'"\s*\n\s*f?"', "", text.read_text())
        for verb, rest in re.findall(r"`floodmark ([a-z][a-z-]*)([^`]*)`", joined):
            named = {*re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)} - {"--help"}
            if not named <= options.get(verb, set()) or verb not in KNOWN:
                unknown.append((text.name, verb, rest))
    assert unknown == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", document.read_text()):
        if "://" not in target and not target.startswith("mailto:"):
            assert (document.parent / target).exists(), f"{target} is not there"


@pytest.mark.parametrize("document", SITE, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_begins_with_its_title(document: Path) -> None:
    assert document.read_text().startswith("# "), f"{document.name} has no title"


@pytest.mark.parametrize("script", ["reference.py", "rule_docs.py", "diagrams.py", "man_page.py"])
def test_what_is_made_from_the_code_is_current(script: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), "--check"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_pictures_fetch_nothing_from_elsewhere() -> None:
    pictures = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
    assert pictures
    for picture in pictures:
        text = picture.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(href|src|url)\s*[=(]\s*[\"']?https?:", text), picture.name


@pytest.mark.parametrize(
    "build",
    [
        ("mkdocs", "build", "--quiet", "--strict", "--site-dir", ".cache/mkdocs"),
        ("zensical", "build", "--strict", "--clean"),
    ],
    ids=lambda build: build[0],
)
def test_the_site_builds_without_a_warning(build: tuple[str, ...], tmp_path: Path) -> None:
    """Links and anchors inside the site are checked by both generators."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    program, *arguments = build
    done = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in (done.stdout + done.stderr).lower()
    built = tmp_path / (".cache/mkdocs" if program == "mkdocs" else "site")
    assert "Floodmark keeps Apache Spark streams going" in (built / "index.html").read_text()
    assert (built / "reference" / "schemas" / "inspect.json").is_file()
