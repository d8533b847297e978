"""Runs the old queries once, then judges and rehearses new code on what they left."""

from __future__ import annotations

import hashlib
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compatibility.changes import Change
from compatibility.queries import OLD, put_events
from floodmark.diagnosis.held import gather_held
from floodmark.engine.code.check import compare
from floodmark.engine.code.rehearse import rehearse
from floodmark.engine.code.skeleton_checkpoint import skeleton_checkpoint
from floodmark.engine.start.launch import start
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.held_checkpoint import HeldCheckpoint
from floodmark.rules.restarts.outline_file import outline_text, parse_outline
from floodmark.rules.restarts.reason import Judgement
from floodmark.rules.restarts.rehearsal import Rehearsal
from floodmark.rules.restarts.verdict import judge_restart
from floodmark.storage.files import open_files
from floodmark.storage.lease_files import claimed_epochs, read_claim, read_lease
from floodmark.storage.load import load

# Compiling code for five rows costs more than anything else here.
_QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@dataclass(frozen=True)
class Outcome:
    judgement: Judgement
    rehearsal: Rehearsal
    outlined: Judgement
    """The same from the checkpoint's outline alone."""
    skeleton: Rehearsal | None = None
    """On a checkpoint that is made of the outline."""

    @property
    def agrees(self) -> bool:
        """Rules and Spark say the same of whether the query starts."""
        refused = any(one.is_refused for one in self.judgement.reasons)
        return refused is not self.rehearsal.ran


class Laboratory:
    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def session(self, conf: dict[str, str]) -> Any:
        session = self._spark.newSession()
        for key, value in {**_QUICK, **conf}.items():
            session.conf.set(key, value)
        return session

    def old(self, name: str) -> tuple[Path, Path]:
        """The inputs and the checkpoint of an old query; run when first asked for."""
        folder = self._folder / name
        checkpoint = folder / "checkpoint"
        if not folder.exists():
            for source in ("events", "others"):
                for batch in (1, 2):
                    put_events(folder / source, batch)
            old = OLD[name]
            writer = old.build(self.session(old.conf), folder).trigger(**old.trigger)
            query = start(writer, checkpoint)
            assert query.awaitTermination(300)
            _until_released(checkpoint)
            for source in ("events", "others"):
                put_events(folder / source, 3)
        return folder, checkpoint

    def judge(self, change: Change, skeleton: bool = False) -> Outcome:
        folder, checkpoint = self.old(change.old)
        with _spoilt(change.spoil, folder, checkpoint) as place:
            before = digest(place)
            # As `old` ran it: another trigger would be a change, too.
            writer = change.new(self.session(change.conf), folder)
            if change.name != "a trigger":
                writer = writer.trigger(**OLD[change.old].trigger)
            files = open_files(str(place))
            loaded = load(files)
            comparison = compare(writer, files, loaded)
            judgement = judge_restart(comparison)
            text = outline_text(gather_held(files, loaded))
            assert outline_text(gather_held(files, load(files))) == text
            held = parse_outline(text.encode(), "outline")
            outlined, made = _judged_by(held, comparison), None
            if skeleton:
                with skeleton_checkpoint(held) as place_of_it:
                    made = rehearse(writer, place_of_it, load(place_of_it), empty=True)
            rehearsal = rehearse(writer, files, loaded)
            after = digest(place)
            touched = {path for path in {*before, *after} if before.get(path) != after.get(path)}
            assert touched == set()
        return Outcome(judgement, rehearsal, outlined, made)


def _judged_by(held: HeldCheckpoint, comparison: Comparison) -> Judgement:
    """The same new code, drawn once, under an outline of the checkpoint."""
    last = held.last
    return judge_restart(
        Comparison(
            held.checkpoint,
            held.held,
            comparison.new,
            last,
            comparison.fingerprint,
            None,
            seen=held.seen,
            windows={} if last and last.tree else held.windows,
            tables=comparison.tables,
        )
    )


@contextmanager
def _spoilt(how: str | None, folder: Path, checkpoint: Path) -> Any:
    if how is None:
        yield checkpoint
    elif how == "sink-ahead":
        entry = folder / "out/_spark_metadata/50"
        entry.write_text("v1")
        try:
            yield checkpoint
        finally:
            entry.unlink()
    else:
        copied = folder / "in-flight"
        if not copied.exists():
            shutil.copytree(checkpoint, copied)
            newest = max(
                (path for path in (copied / "commits").iterdir() if path.name.isdecimal()),
                key=lambda path: int(path.name),
            )
            newest.unlink()
            (newest.parent / f".{newest.name}.crc").unlink()
        yield copied


def _until_released(checkpoint: Path) -> None:
    """The run's lease ends a moment after its query, and its claim says so last."""
    files = open_files(str(checkpoint))
    end = time.monotonic() + 300
    while read_lease(files) is not None or not all(
        (claim := read_claim(files, epoch)) is not None and claim.ended
        for epoch in claimed_epochs(files)
    ):
        assert time.monotonic() < end, f"{checkpoint} is still held"
        time.sleep(0.05)


def digest(folder: Path) -> dict[str, str]:
    """Of every file below, what it holds."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
