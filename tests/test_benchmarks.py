"""The benchmarks' own machinery: a miss stops nothing, noise is no miss, half the speed is seen."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))


def _load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("measured", "mark"),
    [(1.0, "ok"), (1.1, "ok"), (1.105, "close"), (1.2, "close"), (1.4, "MISSED")],
)
def test_what_is_within_the_noise_is_no_miss(
    measured: float, mark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from measure import Claims

    claims = Claims()
    claims.at_most("times", measured, 1.1)
    with pytest.raises(SystemExit) as ended:
        claims.finish()
    assert capsys.readouterr().out.startswith(mark)
    assert ended.value.code == (1 if mark == "MISSED" else 0)


def test_a_miss_and_a_failure_stop_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    benchmarks = _load("benchmarks", ROOT / "scripts" / "benchmarks.py")
    folder = tmp_path / "bench"
    folder.mkdir()
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    head = f"import sys; sys.path.insert(0, {str(ROOT / 'bench')!r})\nfrom measure import Claims\n"
    for name, body in {
        "a_missed": "c = Claims(); c.at_most('times', 9, 1); c.finish()",
        "b_fails": "raise SystemExit('broken')",
        "c_grows": "c = Claims(); c.grows('read', 'keys', 's', [(10, 1), (99, 9)]); c.finish()",
        "d_held": "c = Claims(); c.at_least('times faster', 50, 40); c.finish()",
        "e_fails_late": "c = Claims(); c.at_least('times as slow', 5, 4); raise SystemExit(9)",
    }.items():
        (folder / f"{name}.py").write_text(f'"""About {name}."""\n{head}{body}\n')
    monkeypatch.setattr(benchmarks, "ROOT", tmp_path)
    monkeypatch.setattr(benchmarks, "KEPT", tmp_path / "docs" / "benchmarks.json")
    monkeypatch.setattr(benchmarks, "PAGE", tmp_path / "docs" / "benchmarks.md")
    monkeypatch.setattr(sys, "argv", ["benchmarks.py"])
    assert benchmarks.main() == 1
    results: dict[str, Any] = json.loads((tmp_path / "docs/benchmarks.json").read_text())["results"]
    assert results["a_missed"]["claims"][0]["held"] == "no"
    assert results["b_fails"]["ended"] == "failed with exit status 1"
    assert results["d_held"]["claims"][0]["held"] == "yes"
    assert results["d_held"]["ended"] == "whole"
    assert results["e_fails_late"]["claims"][0]["measured"] == 5
    assert results["e_fails_late"]["ended"] == "failed with exit status 9"
    page = (tmp_path / "docs/benchmarks.md").read_text()
    assert "**missed**" in page
    assert "times faster | 50 | at least 40 | yes" in page
    assert (tmp_path / "docs/pictures/growth-read-keys.svg").is_file()
    assert "d_held" in capfd.readouterr().out
    # Some of them again: the others stay.
    monkeypatch.setattr(sys, "argv", ["benchmarks.py", "d_held"])
    assert benchmarks.main() == 0
    assert "**missed**" in (tmp_path / "docs/benchmarks.md").read_text()


def test_what_was_measured_before_the_limit_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmarks = _load("benchmarks", ROOT / "scripts" / "benchmarks.py")
    really = subprocess.run

    def too_slow(command: list[str], *, timeout: float, **named: Any) -> None:
        really(command, **named)
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(benchmarks.subprocess, "run", too_slow)
    monkeypatch.setattr(benchmarks, "ROOT", tmp_path)
    slow = tmp_path / "slow.py"
    head = f"import sys; sys.path.insert(0, {str(ROOT / 'bench')!r})\nfrom measure import Claims\n"
    slow.write_text(f"{head}Claims().at_least('times faster', int(sys.argv[1]), 4)\n")
    results = benchmarks.run(slow, 60, ["5"])
    assert results["claims"][0]["measured"] == 5
    assert results["ended"] == "cut off by its limit"
    assert benchmarks.given(results) == "Run with `5`. "


def test_arguments_after_two_dashes_go_to_one_script(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmarks = _load("benchmarks", ROOT / "scripts" / "benchmarks.py")
    assert benchmarks.split(["keys", "--", "--keys", "5"]) == (["keys"], ["--keys", "5"])
    monkeypatch.setattr(sys, "argv", ["benchmarks.py", "--", "--keys", "5"])
    with pytest.raises(SystemExit):
        benchmarks.main()
    assert "name it" in capsys.readouterr().err


def test_half_the_speed_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = _load("quick", ROOT / "bench" / "quick" / "__main__.py")
    kept = tmp_path / "benchmarks.json"
    kept.write_text(json.dumps({"quick": {"scan": 4.0, "lint": 4.0}}))
    monkeypatch.setattr(quick, "KEPT", kept)
    monkeypatch.setattr(sys, "argv", ["quick"])
    monkeypatch.setattr(quick, "ratios", lambda *_: {"scan": 7.9, "lint": 8.1})
    assert quick.main() == 1
    told = capsys.readouterr().out
    assert "ok     scan" in told
    assert "SLOWER lint" in told
    monkeypatch.setattr(quick, "ratios", lambda *_: {"scan": 7.9, "lint": 3.0})
    assert quick.main() == 0


def test_what_was_slow_once_is_measured_again() -> None:
    quick = _load("quick", ROOT / "bench" / "quick" / "__main__.py")
    noisy = iter([9.0, 9.0, 9.0, 9.0, 4.5, 9.0])
    assert quick.ratio(2, lambda: next(noisy), lambda: 1.0, 4.0) == 4.5
    assert list(noisy) == []
    assert quick.ratio(2, lambda: 9.0, lambda: 1.0, 4.0) == 9.0


def test_what_was_entered_by_hand_is_said() -> None:
    benchmarks = _load("benchmarks", ROOT / "scripts" / "benchmarks.py")
    kept = json.loads((ROOT / "docs" / "benchmarks.json").read_text())
    kept["results"]["batches"]["note"] = "Entered by hand."
    assert "\n\n**Note.** Entered by hand.\n" in benchmarks.page(kept)


def test_a_process_does_not_count_the_memory_of_its_parent() -> None:
    code = "from measure import own_peak_memory_mb as peak; print(peak())"
    parent = (
        "import subprocess, sys; held = b'x' * 300_000_000; "
        f"subprocess.run([sys.executable, '-c', {code!r}], check=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", parent],
        cwd=ROOT / "bench",
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert 5 < float(done.stdout) < 150


def test_the_page_is_what_the_numbers_say() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import benchmarks as b, json; print(b.page(json.loads(b.KEPT.read_text())), end='')",
        ],
        cwd=ROOT / "scripts",
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout == (ROOT / "docs" / "benchmarks.md").read_text()
