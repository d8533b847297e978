"""Offsets that look like another kind's, notes that contradict them: no wrong answer is given."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import floodmark
import samples
from floodmark.errors import NoAnswer, WouldLose, WrongUse

KAFKA = '{"orders":{"0":23,"1":14}}'
HUBS = "eventhubs.startingPositions"


def stream(
    folder: Path, *lines: str | Callable[[int], str], noted: object = None, **own: bytes
) -> Path:
    """Four batches, the last in flight. `noted` are the kinds in the note of the last start."""
    tree = samples.logs(range(4), range(3))
    for batch in range(4):
        texts = [one(batch) if callable(one) else one for one in lines]
        tree[f"offsets/{batch}"] = samples.offset_entry(batch, *texts)
    tree |= {f"sources/{name.replace('__', '/')}": data for name, data in own.items()}
    if noted is not None:
        note = {"sources": noted, "next_batch": 0, "query_id": "q", "run_id": "r"}
        tree["_floodmark/starts/1.json"] = json.dumps(note).encode()
    cp = samples.write(folder / "cp", tree)
    for path in (cp, *cp.rglob("*")):
        os.utime(path, (1, 1))
    return cp


def kinds(cp: Path) -> list[str]:
    return [one.kind for one in floodmark.inspect(str(cp)).sources]


def options(cp: Path) -> list[str | None]:
    sources = floodmark.offsets(str(cp)).sources
    return [one.option.name if one.option else None for one in sources]


def test_where_event_hubs_began_tells_it(tmp_path: Path) -> None:
    cp = stream(tmp_path, '{"eh":{"0":11,"1":2}}', **{"0__0": b'\0v1\n{"eh":{"0":-1,"1":-1}}'})
    assert (kinds(cp), options(cp)) == (["eventhubs"], [HUBS])
    recognised = floodmark.inspect(str(cp)).recognised["0"]
    assert (recognised.sureness, "sources/<id>/0" in recognised.why) == ("probable", True)


def test_an_earlier_batch_of_event_hubs_tells_it(tmp_path: Path) -> None:
    """-1 is gone once each partition has an event: the source has not changed."""
    cp = stream(tmp_path, lambda batch: f'{{"eh":{{"0":{5 * batch - 1},"1":{batch - 1}}}}}')
    assert (kinds(cp), options(cp)) == (["eventhubs"], [HUBS])
    assert floodmark.inspect(str(cp)).recognised["0"].sureness == "possible"
    assert [one.rule for one in floodmark.doctor(str(cp))] == []


def test_another_hub_in_its_place_is_found(tmp_path: Path) -> None:
    cp = stream(tmp_path, lambda batch: f'{{"eh{batch // 2}":{{"0":{batch},"1":-1}}}}')
    [found] = floodmark.doctor(str(cp))
    assert (found.rule, "reads eh1, and read eh0 before" in found.what) == ("sources-changed", True)


def test_a_new_stream_is_told_the_option_of_event_hubs(tmp_path: Path) -> None:
    cp = stream(tmp_path, '{"eh":{"0":23,"1":-1}}')
    plan = floodmark.upgrade(str(cp), str(tmp_path / "new"), without_state=True).plan
    assert "sources/0/0" not in {step.path for step in plan.steps}
    told = next(note for note in plan.notes if "source 0 (eventhubs)" in note)
    assert f".option('{HUBS}', " in told
    # Where the code alone says where to begin, no replay is promised.
    assert any("read again, under a new number, if the code begins there" in x for x in plan.notes)


@pytest.mark.parametrize("noted", ["iceberg", "mysource", "org.acme.Hubs", "csv", "memory"])
def test_a_note_of_another_kind_makes_kafkas_option_doubtful(noted: str, tmp_path: Path) -> None:
    cp = stream(tmp_path, KAFKA, noted=[{"kind": noted}])
    assert options(cp) == [None]
    with pytest.raises(NoAnswer, match="no starting offsets") as refused:
        _ = floodmark.offsets(str(cp)).starting_offsets
    assert f"The note of the last start says {noted.lower()}" in refused.value.why
    # Kafka's first offsets are not written for what may not be Kafka.
    with pytest.raises(WrongUse, match="the kind of source 0 is not clear"):
        floodmark.upgrade(str(cp), str(tmp_path / "new"), without_state=True)
    said = {"source_kinds": {"0": "kafka"}}
    assert floodmark.offsets(str(cp), **said).starting_offsets == KAFKA
    plan = floodmark.upgrade(str(cp), str(tmp_path / "new"), without_state=True, **said).plan
    assert "sources/0/0" in {step.path for step in plan.steps}


@pytest.mark.parametrize(
    "noted",
    [
        [{"kind": "eventhubs"}, {"kind": "kafka"}],  # of a query with one source more
        [],
        [{"kind": ""}],
        [{"kind": None}],
        [{"name": "orders", "kind": "eventhubs"}],  # of sources with names
    ],
)
def test_a_note_of_other_sources_tells_nothing(noted: object, tmp_path: Path) -> None:
    cp = stream(tmp_path, KAFKA, noted=noted)
    assert (kinds(cp), options(cp)) == (["kafka"], ["startingOffsets"])
    assert "Event Hubs' offsets look the same" in (floodmark.offsets(str(cp)).sources[0].note or "")


def test_a_note_whose_sources_had_another_order_tells_nothing(tmp_path: Path) -> None:
    noted = [{"kind": "eventhubs"}, {"kind": "delta"}]
    cp = stream(tmp_path, samples.DELTA_OFFSET, KAFKA, noted=noted)
    assert kinds(cp) == ["delta", "kafka"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        # Python's authors choose plain words, and json.dumps puts its spaces.
        ('{"commitTime": "20261116054001000"}', "python"),
        ('{"seqNum": 5, "sourceVersion": 1}', "python"),
        ('{"snapshotId": 3, "index": 1, "scanSnapshot": false}', "python"),
        ('{"offsets": {"orders": {"groupName": "g", "offset": "1-0"}}}', "python"),
        ('[{"shard": 2}]', "python"),
        ('{"orders": {"broker-a": {"0": 2}}}', "python"),
        # Fields of a connector with values that it never writes.
        ('{"offsetCommitTime":2}', "unknown"),
        ('{"commitTime":null}', "unknown"),
        ('{"seqNum":"5","sourceVersion":1}', "unknown"),
        ('{"snapshotId":3,"index":1,"scanSnapshot":"maybe"}', "unknown"),
        ('{"version":1,"snapshot_id":"2","position":"x","scan_all_files":"no"}', "unknown"),
        ('{"version":1,"snapshot_id":-12,"position":-3,"scan_all_files":false}', "unknown"),
        ('{"version":1,"snapshot_id":1,"position":1e3,"scan_all_files":false}', "unknown"),
        ('{"_data":{"a":1}}', "unknown"),
        ('{"a":{"iteratorType":null},"b":{"iteratorType":[1]}}', "unknown"),
        ('[{"shard":2}]', "unknown"),
        ('{"orders":{}}', "unknown"),
        ("1000000000000000000000000000002", "unknown"),
    ],
)
def test_forms_that_are_nearly_a_connectors(text: str, kind: str, tmp_path: Path) -> None:
    cp = stream(tmp_path, text)
    assert (kinds(cp), options(cp)) == ([kind], [None])
    for verb in (floodmark.upgrade, floodmark.copy):  # what nobody knows is carried as it is
        verb(str(cp), str(tmp_path / verb.__name__), execute=True)
        assert (tmp_path / verb.__name__ / "offsets/3").read_text().endswith(f"\n{text}")


def test_a_version_below_zero_makes_no_option(tmp_path: Path) -> None:
    text = samples.DELTA_OFFSET.replace('"reservoirVersion":7', '"reservoirVersion":-2')
    cp = stream(tmp_path, text)
    assert options(cp) == [None]
    floodmark.upgrade(str(cp), str(tmp_path / "new"), without_state=True, execute=True)
    start = json.loads((tmp_path / "new/_floodmark/start.json").read_text())
    assert start["sources"] == []


def test_what_cannot_be_read_again_is_not_taken_back(tmp_path: Path) -> None:
    cp = stream(tmp_path, lambda batch: str(batch))
    with pytest.raises(WouldLose, match="may not come") as refused:
        floodmark.rewind(str(cp), to_batch=1)
    assert "if it is a memory stream or a socket" in refused.value.why


@pytest.mark.parametrize(
    "text",
    ['{"seqNum":3,"sourceVersion":1}', '{"cursor":"3"}', KAFKA],
    ids=["auto", "any", "kafka"],
)
def test_files_of_a_sources_own_are_not_left_behind_without_a_word(
    text: str, tmp_path: Path
) -> None:
    cp = stream(tmp_path, text, **{"0__rocksdb/000012.sst": b"x"})
    asked = {"source_kinds": {"0": "kafka"}} if text == KAFKA else {}
    new = str(tmp_path / "new")
    with pytest.raises(WouldLose, match=r"files of its own, such as sources/0/rocksdb/000012\.sst"):
        floodmark.upgrade(str(cp), new, without_state=True, **asked)
    with pytest.raises(WouldLose, match="may not come"):
        floodmark.upgrade(str(cp), new, from_batch=1, **asked)
    floodmark.upgrade(str(cp), new, without_state=True, accept="out-of-reach", **asked)
    floodmark.upgrade(str(cp), new, execute=True, **asked)
    assert (tmp_path / "new/sources/0/rocksdb/000012.sst").read_bytes() == b"x"


FILE_LIST = b'v1\n{"path":"/in/a","timestamp":1,"batchId":0}'


@pytest.mark.parametrize(
    ("space", "noted", "own", "kind", "mended"),
    [
        # Python's json.dumps puts a space; Spark's file source puts none.
        (" ", None, {}, "python", False),
        (" ", [{"kind": "mine"}], {}, "python", False),
        # A list beside it makes it a file source's, and the spaces a doubt: nothing is written.
        (" ", None, {"0__0": FILE_LIST}, "file", False),
        # No list, and the last start read something that floodmark does not know.
        ("", [{"kind": "mine"}], {}, "file", False),
        ("", [{"kind": "kafka"}, {"kind": "mine"}], {}, "file", True),  # of other code
        ("", [{"kind": "csv"}], {}, "file", True),
        ("", [{"kind": "com.example.excel"}], {"0__0": FILE_LIST}, "file", True),
        ("", None, {"0__0": FILE_LIST}, "file", True),
        ("", None, {}, "file", True),
    ],
)
def test_repair_makes_a_list_of_files_for_file_sources_alone(
    space: str, noted: object, own: dict[str, bytes], kind: str, mended: bool, tmp_path: Path
) -> None:
    cp = stream(tmp_path, lambda batch: f'{{"logOffset":{space}{batch}}}', noted=noted, **own)
    assert kinds(cp) == [kind]
    written = {step.path for step in floodmark.repair(str(cp)).plan.steps}
    assert any(path.startswith("sources/0/") for path in written) is mended
    rules = {finding.rule for finding in floodmark.doctor(str(cp))}
    assert ("file-source-log-behind" in rules) is mended


SAID = {"source_kinds": {"0": "eventhubs"}}


def test_a_dispute_is_said_by_whatever_goes_by_the_kind(tmp_path: Path) -> None:
    """The note says a kind that never wrote this offset: nobody but the user can tell."""
    cp = str(stream(tmp_path, KAFKA, noted=[{"kind": "iceberg"}]))
    asked = {"bootstrap_servers": "127.0.0.1:1"}  # nobody is there, and nobody is asked
    [told] = [one for one in floodmark.doctor(cp) if one.rule == "source-kind-disputed"]
    assert "The note of the last start says iceberg" in told.what
    rules = {one.rule: one.what for one in floodmark.doctor(cp, **asked)}
    assert "its kind is not clear" in rules["source-not-asked"]
    [source] = floodmark.lag(cp, **asked).sources
    assert "The note of the last start says iceberg" in (source.error or "")
    with pytest.raises(WrongUse, match="the kind of source 0 is not clear"):
        floodmark.lag(cp, commit_to_group="g", **asked)

    given = tmp_path / "given.json"
    given.write_text('{"orders":{"0":1}}')
    back = floodmark.rewind(cp, to_batch=1, accept="out-of-reach").plan
    assert any("The kind of source 0 is not known" in note for note in back.notes)
    for goal in ({"to_offsets": str(given)}, {"to_batch": 1, "kafka": "127.0.0.1:1"}):
        with pytest.raises(WrongUse, match="the kind of source 0 is not clear") as refused:
            floodmark.rewind(cp, accept="out-of-reach", **goal)
        assert "--source-kind 0=eventhubs" in refused.value.why


def test_the_users_word_ends_a_dispute(tmp_path: Path) -> None:
    cp = str(stream(tmp_path, KAFKA, noted=[{"kind": "iceberg"}]))
    assert "source-kind-disputed" not in {one.rule for one in floodmark.doctor(cp, **SAID)}
    assert {one.sources[0].kind for one in floodmark.batches(cp, **SAID)} == {"eventhubs"}
    [source] = floodmark.lag(cp, **SAID).sources
    assert (source.kind, source.error) == ("eventhubs", None)
    back = floodmark.rewind(cp, to_batch=1, accept="out-of-reach", **SAID).plan
    assert not any("is not known" in note for note in back.notes)
    assert any("Source 0 (eventhubs) was not asked" in note for note in back.notes)
    given = tmp_path / "given.json"
    given.write_text('{"orders":{"0":-1}}')  # before the first event, which Kafka never has
    assert floodmark.rewind(cp, to_offsets=str(given), accept="skips", **SAID).plan.steps
    with pytest.raises(WrongUse, match="orders partition 0 is -1"):
        floodmark.rewind(cp, to_offsets=str(given), source_kinds={"0": "kafka"})
    with pytest.raises(WrongUse, match="no source of this stream reads Kafka"):
        floodmark.rewind(cp, to_batch=1, kafka="127.0.0.1:1", accept="out-of-reach", **SAID)


@pytest.mark.parametrize("held", ['{"pos":2}', "7", "at-7", '{"logOffset":4}'])
def test_an_offset_in_no_such_form_is_none_of_that_kind(held: str, tmp_path: Path) -> None:
    cp = str(stream(tmp_path, held))
    for kind in ("kafka", "eventhubs"):
        for verb in (floodmark.batches, floodmark.doctor, floodmark.offsets):
            with pytest.raises(WrongUse, match=f"the offset is not one of {kind}"):
                verb(cp, source_kinds={"0": kind})
        with pytest.raises(WrongUse, match=f"the offset is not one of {kind}"):
            floodmark.diff(cp, batches=(1, 2), source_kinds={"0": kind})


def test_a_said_kind_is_not_that_of_an_entry_in_another_form(tmp_path: Path) -> None:
    place = stream(tmp_path, KAFKA)
    samples.write(place, {"offsets/1": samples.offset_entry(1, "7")})
    found = floodmark.diff(str(place), batches=(1, 2), **SAID)
    assert "source 0 kind" in {one.where for one in found}


def test_a_kind_that_was_said_counts_for_both_sides_of_a_difference(tmp_path: Path) -> None:
    hub = stream(tmp_path / "a", '{"eh":{"0":11,"1":-1}}')
    later = stream(tmp_path / "b", '{"eh":{"0":12,"1":3}}')
    by_form = [one.where for one in floodmark.diff(str(hub), str(later))]
    assert "source 0 kind" in by_form
    said = [one.where for one in floodmark.diff(str(hub), str(later), **SAID)]
    assert {"source 0 eh 0", "source 0 eh 1"} <= set(said)
    assert "source 0 kind" not in said


def test_a_new_checkpoint_does_not_keep_what_was_said_and_its_plan_says_so(tmp_path: Path) -> None:
    cp, new = str(stream(tmp_path, KAFKA)), str(tmp_path / "new")
    said = [
        note
        for note in floodmark.upgrade(cp, new, execute=True, **SAID).plan.notes
        if "give --source-kind 0=eventhubs again" in note
    ]
    assert len(said) == 1
    assert kinds(Path(new)) == ["kafka"]  # so it is true
    for quiet in ({}, {"source_kinds": {"0": "kafka"}}):
        notes = floodmark.upgrade(cp, str(tmp_path / "other"), **quiet).plan.notes
        assert not any("--source-kind" in note for note in notes)
    # A copy takes the notes along, and a number that only Event Hubs writes tells it anyway.
    noted = stream(tmp_path / "noted", KAFKA, noted=[{"kind": "eventhubs"}])
    floodmark.copy(str(noted), str(tmp_path / "copy"), execute=True)
    assert kinds(tmp_path / "copy") == ["eventhubs"]
    below = stream(tmp_path / "below", '{"eh":{"0":11,"1":-1}}')
    notes = floodmark.upgrade(str(below), str(tmp_path / "x"), **SAID).plan.notes
    assert not any("--source-kind" in note for note in notes)


@pytest.mark.parametrize("kind", ["kafka", "eventhubs", "python"])
def test_kafkas_form_with_pythons_spaces_beside_kafkas_start(kind: str, tmp_path: Path) -> None:
    """Somebody has edited it, or the source is another now: even evidence, so the user is asked."""
    spaced = json.dumps(json.loads(KAFKA))
    cp = stream(tmp_path, spaced, **{"0__0": b'\0v1\n{"orders":{"0":0,"1":0}}'})
    assert options(cp) == [None]
    assert "source-kind-disputed" in {one.rule for one in floodmark.doctor(str(cp))}
    with pytest.raises(WrongUse, match="the kind of source 0 is not clear") as refused:
        floodmark.upgrade(str(cp), str(tmp_path / "new"), without_state=True)
    assert f"--source-kind 0={kind}" in refused.value.why
    said = {"source_kinds": {"0": kind}}
    [source] = floodmark.offsets(str(cp), **said).sources
    name = source.option.name if source.option else None
    wanted = {"kafka": "startingOffsets", "eventhubs": HUBS, "python": None}
    assert (source.kind, name) == (kind, wanted[kind])
    noted = stream(tmp_path / "noted", spaced, noted=[{"kind": "kafka"}], **{"0__0": b"\0v1\n{}"})
    assert kinds(noted) == ["kafka"]  # the note decides
    assert options(noted) == ["startingOffsets"]
