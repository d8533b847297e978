"""Offsets and folders of a new checkpoint, for the sources that its code has now."""

from __future__ import annotations

from floodmark.changes.carry.changed_sources import (
    KeptSource,
    NewSource,
    SourceChange,
    entry_of,
    with_sources,
)
from floodmark.changes.plan.steps import copy, write
from floodmark.checkpoint.offsets import parse_offsets, render_offsets

META = '{"batchWatermarkMs":5,"batchTimestampMs":6,"conf":{}}'
ENTRY = f'v1\n{META}\n{{"logOffset":4}}\n{{"a":{{"0":7}},"b":{{"0":8}}}}'.encode()
FIRST = KeptSource("1", "0", "1", "0")
KAFKA = KeptSource("0", "1", "0", "1", frozenset({"b"}))


def test_each_source_keeps_its_own_line() -> None:
    change = SourceChange((KAFKA, FIRST, NewSource("2", "2", "it begins.")))
    entry = entry_of(parse_offsets(ENTRY), change)
    assert render_offsets(entry) == f'v1\n{META}\n{{"a":{{"0":7}}}}\n{{"logOffset":4}}\n-'.encode()


def test_a_given_offset_stands_in_every_entry() -> None:
    change = SourceChange((KeptSource("0", "0", "0", "0"), NewSource("1", "1", "it begins.", "9")))
    assert render_offsets(entry_of(parse_offsets(ENTRY), change)).endswith(b'{"logOffset":4}\n9')


def test_in_version_2_a_source_without_an_offset_has_no_line() -> None:
    entry = parse_offsets(f'v2\n{META}\norders:{{"logOffset":4}}'.encode())
    change = SourceChange(
        (NewSource("bills", "bills", "it begins."), KeptSource("orders", "orders", "orders", "x"))
    )
    assert render_offsets(entry_of(entry, change)) == render_offsets(entry)


def test_folders_go_with_their_sources_and_those_of_sources_that_went_stay_behind() -> None:
    steps = (
        copy("metadata", "", 3),
        copy("sources/0/7.compact", "seen", 30),
        copy("sources/1/0", "began", 20),
        write("sources/2/_schema_log_t/0", b'v1\n{"p":"file:/new/sources/2"}', "schemas"),
        copy("offsets/9", "entry", len(ENTRY)),
    )
    change = SourceChange(
        (
            KeptSource("0", "2", "0", "2"),
            NewSource("1", "1", "it begins.", initial=b"v1\n"),
            KeptSource("2", "0", "2", "0"),
        )
    )
    made = {step.path: step for step in with_sources(steps, change, lambda path: ENTRY)}
    assert sorted(made) == [
        "metadata",
        "offsets/9",
        "sources/0/_schema_log_t/0",
        "sources/1/0",
        "sources/2/7.compact",
    ]
    assert made["sources/2/7.compact"].origin == "sources/0/7.compact"
    assert made["sources/0/_schema_log_t/0"].data == b'v1\n{"p":"file:/new/sources/0"}'
    assert made["sources/1/0"].data == b"v1\n"
