"""The documents are true: their commands run in the order in which they stand, their links lead
somewhere, what is made from the code is current, and the site builds without a warning.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import click
import pytest

from browsing import chromium
from documents import (
    DOCUMENTS,
    ELSEWHERE,
    EVERY,
    ROOT,
    SITE,
    asks_for_the_demo,
    is_elsewhere,
    prepared,
    starts_spark,
)
from floodmark.cli.main import VERBS, floodmark, run
from floodmark.rules.registry import rules_of

KNOWN = {verb for group in VERBS.values() for verb in group}
COMMANDS = [
    (document, command.split(" | ")[0].split(" > ")[0].split("  # ")[0].strip())
    for document, command in EVERY
    if command.startswith("floodmark ")
]
PAGES = sorted({document for document, _ in EVERY})
PROJECT = [*DOCUMENTS, *(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md"))]
READERS = {"tests/orders.jsonl"}  # in the reader's own project


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


@pytest.mark.parametrize("document", [page for page in PAGES if page != "README.md"])
def test_a_page_can_be_followed(
    document: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without what starts Spark: see test_followed_pages.py."""
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


@pytest.mark.parametrize("place", sorted(set(ELSEWHERE.values())))
def test_what_is_run_elsewhere_is_run_there(place: str) -> None:
    assert (ROOT / place).exists()


def test_every_page_that_starts_spark_is_followed() -> None:
    followed = (ROOT / "tests/test_followed_pages.py").read_text()
    pages = {
        page
        for page, command in EVERY
        if starts_spark(command) and not is_elsewhere(command) and page != "README.md"
    }
    assert [page for page in sorted(pages) if f'"{page}"' not in followed] == []


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


@pytest.mark.parametrize("document", PROJECT, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_names_of_the_repository_is_there(document: Path) -> None:
    """Links to the repository's page, and files of it that a sentence names."""
    text = document.read_text()
    named = {
        *re.findall(r"https://github\.com/floodmark/floodmark/(?:blob|tree)/main/([^)#\s]+)", text),
        *re.findall(r"(?<![\w/.-])((?:tests|bench|src|scripts|ci|monitoring)/[\w./-]*\w)", text),
    }
    assert [one for one in sorted(named - READERS) if not (ROOT / one).exists()] == []


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


def test_numbers_that_pages_repeat_agree() -> None:
    readme = (ROOT / "README.md").read_text()
    assert f"by {len(list(rules_of('compatibility')))} rules" in readme
    carried = re.search(
        r"^\| 4\.2\.0 \| (\d+) of (\d+) \| (\d+) \|",
        (ROOT / "docs" / "reliability.md").read_text(),
        re.M,
    )
    assert carried is not None
    matrix = re.findall(r"^\| .+ \| (\d+) \|$", readme, re.M)
    assert matrix == [carried[2], carried[1], carried[3]]


def test_every_rule_before_a_start_is_on_its_page() -> None:
    text = (ROOT / "docs" / "running.md").read_text()
    assert [one.rule.name for one in rules_of("start") if f"`{one.rule.name}`" not in text] == []


# Options of other programs, and of the scripts and tests that docs/reliability.md names.
FOREIGN = {
    *("--bootstrap-server", "--command-config", "--describe", "--group", "--previous", "--rm"),
    *("--case", "--day", "--every", "--only", "--refresh", "--scripts"),
    *("--help", "--yes"),
}


def test_every_option_that_a_page_names_is_one() -> None:
    context = click.Context(floodmark)
    verbs = [command for name in KNOWN if (command := floodmark.get_command(context, name))]
    known = {
        option
        for command in (floodmark, *verbs)
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    named = {
        (str(page.relative_to(ROOT)), option)
        for page in DOCUMENTS
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", page.read_text())
    }
    assert [one for one in sorted(named) if one[1] not in known | FOREIGN] == []
    assert {option for _, option in named} >= FOREIGN


def test_pictures_fetch_nothing_from_elsewhere() -> None:
    pictures = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
    assert pictures
    for picture in pictures:
        text = picture.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(href|src|url)\s*[=(]\s*[\"']?https?:", text), picture.name


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with a fetched server, whose site has been built."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "docs", folder / "docs")
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "site.py", folder / "scripts")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    server = folder / ".cache" / "services" / "kafka.jar"
    server.parent.mkdir(parents=True)
    server.write_text("fetched")
    done = build_site(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_builds_without_a_warning(copied: Path) -> None:
    """Both generators check links and anchors inside the site; fetched servers stay there."""
    site = copied / "site"
    assert "Floodmark keeps Apache Spark streams going" in (site / "index.html").read_text()
    assert (site / "reference" / "schemas" / "inspect.json").is_file()
    assert (copied / ".cache" / "services" / "kafka.jar").read_text() == "fetched"
    with (copied / "docs" / "versions.md").open("a") as page:
        page.write("\n[nowhere](nowhere.md)\n")
    broken = build_site(copied)
    assert broken.returncode == 1
    assert "nowhere.md" in broken.stderr


@pytest.mark.services
def test_what_is_copied_from_a_page_can_be_pasted(copied: Path) -> None:
    """The button copies the commands, and not the `$` before them."""
    with served(copied / "site") as address, chromium() as browser:
        context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.goto(f"{address}/how-to/damaged-checkpoint/")
        page.locator(".highlight").first.hover()
        page.locator(".highlight button").first.click()
        page.wait_for_function("navigator.clipboard.readText().then(text => text.length > 0)")
        lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert len(lines) == 3
    assert [line for line in lines if not line.startswith("floodmark ")] == []


@pytest.mark.services
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_can_be_read_at_any_width(copied: Path, width: int) -> None:
    """No option is broken after its hyphens, no page moves sideways, no picture is too small."""
    pages = ("", "moving/", "how-to/damaged-checkpoint/", "reference/commands/", "mending/")
    with served(copied / "site") as address, chromium() as browser:
        page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
        for name in pages:
            page.goto(f"{address}/{name}")
            broken = page.evaluate(
                "[...document.querySelectorAll('.md-content :not(pre) > code .fm-option')]"
                ".filter(one => one.getClientRects().length > 1).map(one => one.textContent)"
            )
            assert broken == [], name
            bare = page.evaluate(
                "[...document.querySelectorAll('.md-content :not(pre) > code')]"
                ".filter(one => /^--[a-z-]{2,30}$/.test(one.textContent))"
                ".filter(one => one.getClientRects().length > 1).map(one => one.textContent)"
            )
            assert bare == [], name
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            pictures = page.evaluate(
                "[...document.querySelectorAll('img[src*=\"pictures/terminal-\"]')]"
                ".map(one => one.getBoundingClientRect().width)"
            )
            assert all(one > 600 for one in pictures), name


@contextmanager
def served(folder: Path) -> Iterator[str]:
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def build_site(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "scripts/site.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
