"""What each kind of source is carried with, and which are not taken back without being asked.

The offsets are those of golden_offsets.py; no connector runs here.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from golden_offsets import GOLDEN, OWN_FILES

import floodmark
import samples
from floodmark.cli.main import run
from floodmark.errors import WouldLose

REFUSED = {
    "auto-loader": "keeps files of its own",
    "paimon": "begins where its own options say",
    "pulsar": "removes acknowledged messages",
    "mongodb": "tokens that the oplog still has",
    "delta-sharing": "shares the table's history",
}
GOES_BACK = ("eventhubs", "kinesis", "hudi", "python", "iceberg")


def stream(folder: Path, kind: str) -> Path:
    text = GOLDEN[kind][0].text
    tree = samples.logs(range(4), range(4), offset=lambda batch: text)
    tree |= {f"sources/0/{name}": b"v1\n" + text.encode() for name in OWN_FILES.get(kind, ())}
    cp = samples.write(folder / "cp", tree)
    for path in (cp, *cp.rglob("*")):
        os.utime(path, (1, 1))
    return cp


@pytest.mark.parametrize("kind", [*REFUSED, *GOES_BACK])
def test_moves_carry_the_files_of_every_kind(kind: str, tmp_path: Path) -> None:
    cp = stream(tmp_path, kind)
    own = {f"sources/0/{name}" for name in OWN_FILES.get(kind, ())}
    for verb in (floodmark.upgrade, floodmark.copy):
        new = tmp_path / verb.__name__
        verb(str(cp), str(new), execute=True)
        found = {path.relative_to(new).as_posix() for path in new.glob("sources/**/*")}
        assert own <= found
        text = GOLDEN[kind][0].text
        assert (new / "offsets" / "3").read_text().endswith(f"\n{text}")
    repo, back = tmp_path / "repo", tmp_path / "back"
    floodmark.backup(str(cp), str(repo), execute=True)
    floodmark.restore(str(repo), str(back), execute=True)
    for name in (*own, "offsets/3"):
        assert (back / name).read_bytes() == (cp / name).read_bytes()


@pytest.mark.parametrize("kind", REFUSED)
def test_going_back_is_refused_with_the_reason(kind: str, tmp_path: Path) -> None:
    cp = stream(tmp_path, kind)
    with pytest.raises(WouldLose, match="may not come") as refused:
        floodmark.rewind(str(cp), to_batch=1)
    assert REFUSED[kind] in refused.value.why
    assert "--accept out-of-reach" in refused.value.do
    plan = floodmark.rewind(str(cp), to_batch=1, accept="out-of-reach").plan
    assert any(REFUSED[kind] in note for note in plan.notes)


@pytest.mark.parametrize("kind", GOES_BACK)
def test_going_back_says_that_nobody_was_asked(kind: str, tmp_path: Path) -> None:
    plan = floodmark.rewind(str(stream(tmp_path, kind)), to_batch=1).plan
    assert any("was not asked whether it still has" in note for note in plan.notes)


def test_what_an_option_does_not_say_goes_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka's option is printed where Event Hubs may be meant: the pipe gets the option alone."""
    cp = stream(tmp_path, "kafka")
    assert run(["offsets", str(cp), "--starting-offsets"]) == 0
    said = capsys.readouterr()
    assert said.out.strip() == GOLDEN["kafka"][0].text
    assert "Event Hubs' offsets look the same" in said.err
