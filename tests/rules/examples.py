"""Finds golden checkpoints and the broken examples made of them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.live_answers import LiveAnswers
from floodmark.diagnosis.gather import gather
from floodmark.rules.finding import Finding
from floodmark.rules.registry import examine
from samples import HeldFiles, Listing

TESTS = Path(__file__).resolve().parents[1]
GOLDEN = TESTS / "golden"
BROKEN = TESTS / "broken"
Tree = dict[str, bytes]


def golden(name: str) -> Tree:
    """A golden checkpoint's files: `3.5/sales-hdfs`."""
    return read_tree(GOLDEN / name / "checkpoint")


def read_tree(folder: Path) -> Tree:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def home(name: str) -> str:
    """Where a golden checkpoint was made, which some of its files remember."""
    return f"/tmp/floodmark-golden/{name.split('/')[1]}/checkpoint"


def golden_names() -> list[str]:
    return sorted(
        path.parent.relative_to(GOLDEN).as_posix() for path in GOLDEN.glob("*/*/checkpoint")
    )


class AgedFiles(HeldFiles):
    """Held files, some of them of another time, and what stands there and is no file."""

    def __init__(
        self, tree: Tree, root: str, mtimes: Mapping[str, int], unlisted: Mapping[str, str]
    ) -> None:
        super().__init__(tree, root=root)
        self.mtimes = mtimes
        self.unlisted = unlisted

    def list(self, folder: str = "", most: int | None = None) -> Listing:
        listed = super().list(folder, most)
        return Listing(
            tuple(
                FileInfo(path, size, self.mtimes.get(path, mtime))
                for path, size, mtime in listed.files
            ),
            listed.complete and not self.unlisted,
            tuple(self.unlisted.items()),
        )


def diagnose(
    tree: Tree,
    root: str = "held",
    mtimes: Mapping[str, int] | None = None,
    share: float | None = None,
    outside: LiveAnswers | None = None,
    unlisted: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    evidence = gather(AgedFiles(tree, root, mtimes or {}, unlisted or {}), share)
    return examine(replace(evidence, outside=outside))


def example(family: str, module: str) -> ModuleType:
    return importlib.import_module(f"broken.{family}.{module}")
