"""Completion in the three shells, and the manual page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from floodmark.cli.main import run
from floodmark.errors import FloodmarkError

VARIABLE = "_FLOODMARK_COMPLETE"
ROOT = Path(__file__).parents[2]
FLOODMARK = str(Path(sys.executable).with_name("floodmark"))


def asked(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """What bash is given for the last word."""
    monkeypatch.setenv(VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    with pytest.raises(SystemExit) as ended:
        run([])
    assert ended.value.code == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("floodmark rep", ["plain,replay", "plain,repartition", "plain,repair"]),
        ("floodmark rewind --to-b", ["plain,--to-batch"]),
        ("floodmark inspect data/ch", ["file,data/ch"]),
        ("floodmark migrate a b --app sa", ["file,sa"]),
        ("floodmark explain FM104", ["plain,FM104"]),
        ("floodmark explain empty-l", ["plain,empty-log-entry"]),
        ("floodmark --completion f", ["plain,fish"]),
    ],
)
def test_what_may_follow(
    words: str,
    found: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert asked(words, monkeypatch, capsys) == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--completion", shell]) == 0
    assert f"{VARIABLE}={shell}_complete" in capsys.readouterr().out


def test_bash_itself_completes(tmp_path: Path) -> None:
    script = tmp_path / "ask.sh"
    script.write_text(
        f'PATH="{Path(FLOODMARK).parent}:$PATH"\n'
        'eval "$(floodmark --completion bash)"\n'
        "COMP_WORDS=(floodmark und); COMP_CWORD=1\n"
        '_floodmark_completion floodmark; echo "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", str(script)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.strip() == "undo", done.stderr


def shell(fetched: ModuleType, name: str) -> tuple[Path, dict[str, str]]:
    try:
        found: tuple[Path, dict[str, str]] = fetched.shell(name)
    except FloodmarkError as error:
        pytest.skip(f"{name} is not here, and could not be fetched: {error.what}")
    return found


def said_by(fetched: ModuleType, name: str, script: str, folder: Path) -> str:
    program, variables = shell(fetched, name)
    place = folder / "script"
    place.write_text(script)
    path = f"{Path(FLOODMARK).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [program, place],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **variables, "PATH": path},
    )
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.services
def test_fish_itself_completes(fetched: ModuleType, tmp_path: Path) -> None:
    asking = 'floodmark --completion fish | source; complete -C "floodmark und"'
    found = said_by(fetched, "fish", asking, tmp_path).splitlines()
    assert [line.split("\t")[0] for line in found] == ["undo"]
    assert "Take back the last change" in found[0]


@pytest.mark.services
def test_zsh_itself_completes(fetched: ModuleType, tmp_path: Path) -> None:
    """Outside of its line editor: what the script would have it show is printed."""
    unpacked = shell(fetched, "zsh")[0].parents[1]
    asking = (
        f"module_path+=({unpacked}/usr/lib/*/zsh/*(N)); compdef() {{ registered=$2 }}\n"
        '_describe() { print -rl -- "${(@P)3}" }; eval "$(floodmark --completion zsh)"\n'
        'words=(floodmark und); CURRENT=2; _floodmark_completion; print "for $registered"\n'
    )
    [found, registered] = said_by(fetched, "zsh", asking, tmp_path).splitlines()
    assert found.startswith("undo:Take back the last change")
    assert registered == "for floodmark"


def test_a_machine_without_shells_has_its_other_servers(
    fetched: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`make services` says what is missing, and `make test` goes on."""
    monkeypatch.setattr(fetched, "FOLDER", tmp_path)
    monkeypatch.setattr(fetched.shutil, "which", lambda _: None)
    with pytest.raises(FloodmarkError, match="there is no fish"):
        fetched.shell("fish")
    for name in ("spark_connectors", "s3_server", "hdfs_server", "kafka_tools"):
        monkeypatch.setattr(fetched, name, tuple)
    for name in ("promtool", "postgres_programs"):
        monkeypatch.setattr(fetched, name, lambda: tmp_path)
    assert fetched.main() == 0


def test_a_new_container_has_no_lists_of_packages_yet(
    fetched: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran: list[str] = []

    def run(command: list[str], *_: object, **__: object) -> None:
        ran.append(command[1])
        if "update" not in ran:
            raise FloodmarkError("Unable to locate package zsh")

    monkeypatch.setattr(fetched, "_run", run)
    monkeypatch.setattr(fetched.os, "geteuid", lambda: 0)
    fetched._download(["zsh"], tmp_path)
    assert ran == ["download", "update", "download"]
    ran.clear()
    monkeypatch.setattr(fetched.os, "geteuid", lambda: 1000)
    with pytest.raises(FloodmarkError, match="Unable to locate"):
        fetched._download(["zsh"], tmp_path)


def test_the_manual_page_reads_well() -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed here")
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", str(ROOT / "man" / "floodmark.1")],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stderr == ""
    # Terminals of old print a bold letter twice, with a step back between.
    text = re.sub(r".\x08|\x1b\[[\d;]*m", "", done.stdout).replace("‐", "-")
    for words in ("NAME", "floodmark rewind", "--to-batch", "EXIT STATUS", "NO_COLOR"):
        assert words in text
