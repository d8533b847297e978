"""Hudi's timeline is read by the names of its files; no Hudi wrote these."""

from __future__ import annotations

from pathlib import Path

import pytest

import floodmark
import samples

EARLY, MIDDLE, LATE = "20261116050000000", "20261116054001000", "20261116060000000"


def stream(folder: Path, field: str, instant: str) -> str:
    text = f'{{"{field}":"{instant}"}}'
    return str(samples.write(folder / "cp", samples.logs(range(3), range(3), lambda _: text)))


def table(folder: Path, *names: str) -> str:
    tree = {f".hoodie/{name}": b"" for name in ("hoodie.properties", *names)}
    return str(samples.write(folder / "table", tree))


def before_1_0(*instants: str) -> list[str]:
    return [f"{one}.{kind}" for one in instants for kind in ("commit", "commit.requested")]


def since_1_0(*instants: str) -> list[str]:
    return [f"timeline/{EARLY}_{one}.deltacommit" for one in instants]


@pytest.mark.parametrize("names", [before_1_0, since_1_0])
@pytest.mark.parametrize(
    ("stands", "words"),
    [
        (MIDDLE, None),
        ("00000000000000", None),
        (EARLY, f"begins at {MIDDLE}: commits between them are archived"),
        ("20261116070000000", f"ends at {LATE}"),
    ],
)
def test_the_commit_is_on_the_timeline(
    names: object, stands: str, words: str | None, tmp_path: Path
) -> None:
    assert callable(names)
    cp = stream(tmp_path, "offsetCommitTime", stands)
    found = floodmark.doctor(cp, table=table(tmp_path, *names(MIDDLE, LATE)))
    assert [one.rule for one in found] == ([] if words is None else ["hudi-instant-gone"])
    assert words is None or words in found[0].what


def test_tables_that_cannot_tell(tmp_path: Path) -> None:
    cp = stream(tmp_path, "offsetCommitTime", MIDDLE)
    [empty] = floodmark.doctor(cp, table=table(tmp_path))
    assert "has no completed commit" in empty.what
    [none] = floodmark.doctor(cp, table=str(tmp_path))
    assert (none.rule, "not a Hudi table" in none.what) == ("source-not-asked", True)
    [unnamed] = floodmark.doctor(cp, sources=True)
    assert "--table PATH" in unnamed.what


def test_the_old_form_is_told(tmp_path: Path) -> None:
    [old] = floodmark.doctor(stream(tmp_path, "commitTime", MIDDLE))
    assert (old.rule, old.severity) == ("hudi-old-offset", "advice")
    assert MIDDLE in old.what
