"""What is published: wheel and source archive, installed into an environment that has nothing."""

from __future__ import annotations

import email
import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from project_scripts import script

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "4.2"
TOTALS = str(GOLDEN / "sales-hdfs" / "checkpoint")
KAFKA = str(GOLDEN / "kafka" / "checkpoint")
WINDOWED = str(GOLDEN / "windowed" / "checkpoint")
DSTREAMS = str(GOLDEN / "dstreams" / "checkpoint")
ICEBERG = str(ROOT / "tests" / "golden" / "4.1" / "iceberg" / "checkpoint")
PIPELINE = str(ROOT / "tests" / "release" / "spark-pipeline.yml")
SALES = str(ROOT / "examples" / "sales.py")
SCRIPT = str(ROOT / "tests" / "broken" / "pipeline" / "trigger_once.py")
"""It builds its own session, as most streams do."""
MOST_TIMES = 12
"""`import floodmark` and the command's own module, in starts of a bare Python: about 150 ms."""
PYTHONS = script("pythons")
BASE = {"click", "floodmark", "fsspec", "markdown-it-py", "mdurl", "pygments", "rich"}


def done(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    ended = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def tool(name: str) -> Path:
    return Path(sys.executable).with_name(name)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a source archive and the wheel that is made from it."""
    folder = tmp_path_factory.mktemp("dist")
    done(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    assert sorted(path.suffix for path in folder.iterdir()) == [".gz", ".whl"]
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        return email.message_from_bytes(archive.read(name))


@pytest.fixture(scope="module")
def empty(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bin/ of an environment with the wheel and what it asks for, and nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder)
    install(folder / "bin" / "python", wheel)
    return folder / "bin"


def install(python: Path, wheel: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    done(*pip, "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)


def test_the_index_takes_them(built: Path, wheel: Path) -> None:
    done(tool("twine"), "check", "--strict", *built.iterdir())
    done(tool("check-wheel-contents"), wheel)


def test_the_page_on_the_index_has_no_relative_link(metadata: Message) -> None:
    text = metadata.get_payload()
    assert isinstance(text, str)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(links) > 10
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_it_says_what_it_is(metadata: Message) -> None:
    urls = {line.split(", ")[0] for line in metadata.get_all("Project-URL", [])}
    assert urls == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    said = metadata.get_all("Classifier", [])
    for minor in range(10, 15):
        assert f"Programming Language :: Python :: 3.{minor}" in said
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["License-Expression"] == "Apache-2.0"


def test_only_the_package_is_inside(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"floodmark"}
    assert "floodmark/py.typed" in names
    assert any(name.endswith("/data/share/man/man1/floodmark.1") for name in names)
    assert any(name.startswith("floodmark/web/static/") for name in names)


def test_the_base_install_reads_a_checkpoint(empty: Path) -> None:
    assert "Spark goes on with batch 3" in done(empty / "floodmark", "inspect", TOTALS)
    packages = done(
        empty / "python",
        "-c",
        "from importlib.metadata import distributions as d; print(*(x.name for x in d()))",
    )
    found = {name.lower() for name in packages.split()} - {"pip", "setuptools"}
    assert found == BASE


def test_it_runs_without_being_installed(wheel: Path, tmp_path: Path) -> None:
    told = done(tool("uvx"), "--from", wheel, "floodmark", "inspect", TOTALS, cwd=tmp_path)
    assert "Spark goes on with batch 3" in told


def test_the_base_install_starts_quickly(empty: Path) -> None:
    code = "import time, floodmark, floodmark.cli.main; print(time.process_time())"
    bare = "import time; print(time.process_time())"
    both = [
        (float(done(empty / "python", "-c", code)), float(done(empty / "python", "-c", bare)))
        for _ in range(7)
    ]
    spent, start = (min(column) for column in zip(*both, strict=True))
    assert spent < MOST_TIMES * start


def test_inspect_loads_nothing_that_it_does_not_need(empty: Path) -> None:
    code = (
        "import sys; from floodmark.cli.main import run; run(['inspect', sys.argv[1]]);"
        "print('loaded', *(m for m in ('fsspec', 'rich', 'asyncio', 'http') if m in sys.modules))"
    )
    assert done(empty / "python", "-c", code, TOTALS).splitlines()[-1] == "loaded"


def _answer(empty: Path, arguments: list[str], folder: Path) -> tuple[int, str]:
    """The exit status, and all that the command said."""
    ended = subprocess.run(
        [empty / "floodmark", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["state", TOTALS], "[state]"),
        (["state", DSTREAMS], "[state]"),
        (["doctor", TOTALS, "--read-data"], "[state]"),
        (["repartition", TOTALS, "new", "--partitions", "3"], "[state]"),
        (["convert", TOTALS, "new", "--provider", "rocksdb"], "[state]"),
        (["inspect", DSTREAMS], "[state]"),
        (["doctor", DSTREAMS], "[state]"),
        (["run", SALES], "[spark]"),
        (["run", SALES, "--bisect"], "[spark]"),
        (["run", SCRIPT, "--bisect"], "[spark]"),
        (["outline", WINDOWED], "[state]"),
        (["drill", SALES, "--input", SALES], "[spark]"),
        (["upgrade", TOTALS, "new", "--app", SALES], "[spark]"),
        (["inspect", DSTREAMS, "--trust"], "[state]"),
        (["state", DSTREAMS, "--trust"], "[state]"),
        (["demo", "--folder", "demo"], "[spark]"),
        (["check", TOTALS, SALES], "[spark]"),
        (["migrate", TOTALS, "new", "--app", SALES], "[spark,state]"),
        (["bootstrap", "new", "--app", SALES, "--state", "t.parquet"], "[spark,state]"),
        (["leave-dstreams", DSTREAMS, "new", "--app", SALES], "[spark,state]"),
        (["replay", TOTALS, "--batch", "1", "--app", SALES], "[spark,state]"),
        (["compare", TOTALS, "--old", SALES, "--new", SALES], "[spark,state]"),
        (["serve", "."], "[web]"),
        (["lag", KAFKA, "--kafka", "127.0.0.1:9"], "[kafka]"),
        (["inspect", "s3://bucket/orders"], "[s3]"),
        (["inspect", "webhdfs://host/orders"], "[hdfs]"),
        (["inspect", "gs://bucket/orders"], "gcsfs"),
        (["inspect", "abfss://files@account.dfs.core.windows.net/orders"], "adlfs"),
        (["inspect", "abfs://files/orders"], "adlfs"),
        (["inspect", "hdfs://host/orders"], "pyarrow"),
        (["inspect", "oss://bucket/orders"], "ossfs"),
        (["inspect", "https://host/orders"], "requests aiohttp"),
        (["scan", "s3://bucket"], "[s3]"),
        (["copy", TOTALS, "s3://bucket/orders"], "[s3]"),
        (["backup", TOTALS, "s3://bucket/backups", "--execute"], "[s3]"),
        (["restore", "s3://bucket/backups", "new"], "[s3]"),
        (["watch", "s3://bucket/orders"], "[s3]"),
        (["lag", KAFKA, "--kafka", "127.0.0.1:9", "--commit-to-group", "g"], "[kafka]"),
        (["lag", ICEBERG, "--table", "lake.db.orders"], "[iceberg]"),
        (["inspect", PIPELINE], "[pipelines]"),
        (["scan", PIPELINE], "[pipelines]"),
        (["lint", PIPELINE], "[pipelines]"),
        (["run", PIPELINE], "[pipelines]"),
    ],
    ids=lambda value: (
        " ".join(Path(part).name for part in value) if isinstance(value, list) else ""
    ),
)
def test_a_verb_says_which_extra_it_needs(
    empty: Path, arguments: list[str], extra: str, tmp_path: Path
) -> None:
    status, told = _answer(empty, arguments, tmp_path)
    assert status in (2, 3), told
    assert re.search(rf"pip install ['\"]?(floodmark)?{re.escape(extra)}", told), told
    assert "Traceback" not in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "extra", "ends"),
    [
        (["doctor", KAFKA, "--sources", "--kafka", "127.0.0.1:9"], "[kafka]", 0),
        (["doctor", ICEBERG, "--sources", "--table", "lake.db.orders"], "[iceberg]", 0),
        (["diff", TOTALS, "--batches", "0..1"], "[state]", 1),
    ],
    ids=["doctor --kafka", "doctor --table", "diff"],
)
def test_an_answer_in_part_says_what_gives_the_rest(
    empty: Path, arguments: list[str], extra: str, ends: int, tmp_path: Path
) -> None:
    status, told = _answer(empty, arguments, tmp_path)
    assert status == ends, told
    assert re.search(rf"pip install ['\"]?floodmark{re.escape(extra)}", told), told


@pytest.mark.parametrize("minor", PYTHONS.OFFERED)
def test_every_python_that_is_here_takes_it(
    wheel: Path, empty: Path, minor: int, tmp_path: Path
) -> None:
    """This machine's, or what `make services` has fetched; the release's workflow has them all."""
    if minor == sys.version_info.minor:
        commands = empty
    else:
        python = PYTHONS.working(minor)
        if python is None:
            pytest.skip(f"Python 3.{minor} is not here, and `make services` could not fetch it")
        commands = tmp_path / "bin"
        done(python, "-m", "venv", "--without-pip", tmp_path)
        install(commands / "python", wheel)
    assert f"3.{minor}." in done(commands / "python", "--version")
    assert "batch 3" in done(commands / "floodmark", "inspect", TOTALS)
    assert "FM201" in done(commands / "floodmark", "explain", "FM201")
    assert "Nothing found" in done(commands / "floodmark", "lint", SALES)


def test_a_machine_that_is_no_debian_says_which_python_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And `make services` goes on: the tests take the Pythons that are there."""
    monkeypatch.setattr(PYTHONS, "FOLDER", tmp_path)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(PYTHONS.shutil, "which", lambda _: None)
    assert PYTHONS.main() == 0
    told = capsys.readouterr().err.splitlines()
    assert [line.split()[:3] for line in told] == [
        [f"python3.{minor}", "not", "there:"] for minor in range(10, 15)
    ]
    assert "this is no Debian" in told[-1]


@pytest.mark.soak  # half a minute each, most of it the index's answers
@pytest.mark.parametrize("minor", range(10, 15))
def test_the_pinned_versions_are_there_for_every_python(minor: int, tmp_path: Path) -> None:
    """`make setup` on each of them; the oldest one is the first that a package leaves behind."""
    asked = ("--all-extras", "--group", "dev", "--python-version", f"3.{minor}")
    pins = ROOT / "constraints.txt"
    place = tmp_path / "resolved.txt"
    done(tool("uv"), "pip", "compile", "-q", *asked, "-c", pins, "-o", place, cwd=ROOT)
    assert "pyspark==" in place.read_text()


def test_a_python_that_is_too_old_says_so_where_pip_was_not_asked(tmp_path: Path) -> None:
    """With a real 3.9 where there is one; else this one is told that it is one."""
    old = PYTHONS.working(9)
    command = (
        [old, "-m", "floodmark", "--version"]
        if old
        else [sys.executable, "-c", "import sys; sys.version_info = (3, 9, 2); import floodmark"]
    )
    ended = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert ended.returncode == 1
    assert re.fullmatch(
        r"floodmark needs Python 3\.10 or later, and this is 3\.9\.\d+\. Run it with a newer one: "
        r"python3\.12 -m pip install floodmark\n",
        ended.stderr,
    ), ended.stderr


def test_a_python_that_is_too_old_is_told_so(tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\nexit 1\n")  # the answer of an old one to the question of its age
    old.chmod(0o755)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    ended = subprocess.run(
        ["make", "setup", f"PYTHON={old}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode != 0
    assert "needs Python 3.10 or later" in ended.stdout
    assert "make PYTHON=python3.12 setup" in ended.stdout


@pytest.mark.parametrize("application", [SALES, SCRIPT], ids=["pipeline", "script"])
@pytest.mark.parametrize(
    ("java", "words"),
    [(None, "Java"), ("1.8.0_392", "Java 8 is too old")],
    ids=["missing", "too old"],
)
def test_java_that_is_missing_or_too_old_is_told_so(
    java: str | None, words: str, application: str, tmp_path: Path
) -> None:
    """In an environment whose PATH leads to no other Java."""
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    if java:
        (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
        (home / "bin" / "java").chmod(0o755)
        (home / "release").write_text(f'JAVA_VERSION="{java}"\nMODULES="java.base"\n')
    environment = {**os.environ, "PATH": str(home / "bin")}
    environment.pop("JAVA_HOME", None)
    if java:
        environment["JAVA_HOME"] = str(home)
    ended = subprocess.run(
        [sys.executable, "-m", "floodmark", "run", application, "--available-now"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
    )
    assert ended.returncode == 2, ended.stderr
    assert words in ended.stderr
    assert "Install Java 17" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.soak  # ten seconds, and the release's workflow does the same
def test_the_bill_of_materials_names_what_is_installed(empty: Path, tmp_path: Path) -> None:
    place = tmp_path / "sbom.json"
    done(tool("cyclonedx-py"), "environment", empty / "python", "-o", place)
    text = place.read_text()
    for name in BASE - {"pygments"}:
        assert f'"name": "{name}"' in text


def test_container_recipes_name_what_there_is() -> None:
    """They are not built here: what they copy has to be there, and let in by .dockerignore."""
    recipe = (ROOT / "Dockerfile").read_text()
    copied = [
        part
        for line in re.findall(r"^COPY (?!--from)(.+)$", recipe, re.M)
        for part in line.split()[:-1]
    ]
    let_in = (ROOT / ".dockerignore").read_text().splitlines()
    assert copied
    for part in copied:
        assert (ROOT / part).exists(), part
        assert f"!{part}" in let_in, part
    assert json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())["postCreateCommand"]


def test_workflows_are_safe() -> None:
    """zizmor finds nothing; every action of somebody else is named by a commit."""
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert workflows
    done(tool("zizmor"), "--offline", "--no-progress", *workflows, ROOT / "action.yml")
    for workflow in workflows:
        for used in re.findall(r"uses: (\S+)", workflow.read_text()):
            assert used.startswith("./") or re.search(r"@[0-9a-f]{40}$", used), used
