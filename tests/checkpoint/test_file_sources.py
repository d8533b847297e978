"""Which sources of a batch are files, whatever the newest batch and the notes say."""

from __future__ import annotations

import pytest

from floodmark.checkpoint.evidence import Evidence, NotedStart
from floodmark.checkpoint.file_sources import file_sources
from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.model import Checkpoint
from floodmark.connectors.registry import read_source_offset

LIST = FileInfo("sources/0/0", 90, 0)


def _evidence(offset: str, notes: list[object], *files: FileInfo) -> Evidence:
    # The newest batch could not be read (a link stood there), and the batch asked of could.
    checkpoint = Checkpoint("cp", "structured-streaming", files)
    note = {"sources": notes}
    return Evidence(
        checkpoint,
        positions={3: (read_source_offset("0", offset),)},
        starts=(NotedStart("_floodmark/starts/1.json", "q", "r", note),) if notes else (),
    )


@pytest.mark.parametrize(
    ("notes", "found"),
    [
        ([], ["0"]),
        ([{"kind": "text"}], ["0"]),
        ([{"kind": "my_python_source"}], []),
        ([{"name": "0", "kind": "my_python_source"}], []),
        ([{"kind": "my_python_source"}, {"kind": "text"}], ["0"]),
        (["no object"], ["0"]),
    ],
)
def test_a_batch_tells_how_many_sources_a_note_must_have(
    notes: list[object], found: list[str]
) -> None:
    evidence = _evidence('{"logOffset":3}', notes)
    assert [source.id for source in file_sources(evidence, 3)] == found


def test_a_list_of_files_outweighs_the_note() -> None:
    evidence = _evidence('{"logOffset":3}', [{"kind": "my_python_source"}], LIST)
    assert [source.id for source in file_sources(evidence, 3)] == ["0"]


def test_a_batch_that_was_not_read_has_no_sources() -> None:
    assert not list(file_sources(_evidence('{"logOffset":3}', []), 2))
