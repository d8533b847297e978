"""Log entries with one thing changed keep everything else, of later versions too."""

from __future__ import annotations

import json

from floodmark.checkpoint.commits import parse_commit, render_commit, with_state_ids
from floodmark.checkpoint.metadata import parse_operator_metadata, with_partitions
from floodmark.checkpoint.offsets import parse_offsets, render_offsets, with_conf

PARTITIONS = "spark.sql.shuffle.partitions"


def test_a_setting_is_set_and_the_rest_stays() -> None:
    text = (
        'v2\n{"batchWatermarkMs":7,"batchTimestampMs":9,"conf":{"a":"1"},'
        '"sourceMetadataInfo":{"later":1}}\norders:{"logOffset":12}\nclicks:-'
    )
    entry = with_conf(parse_offsets(text.encode()), {PARTITIONS: "5", "a": "2"})
    again = parse_offsets(render_offsets(entry))
    assert again.metadata is not None
    assert dict(again.metadata.conf) == {"a": "2", PARTITIONS: "5"}
    assert (again.metadata.batch_watermark_ms, again.version) == (7, 2)
    assert json.loads(again.metadata.text)["sourceMetadataInfo"] == {"later": 1}
    assert again.offsets == (("orders", '{"logOffset":12}'), ("clicks", None))


def test_an_entry_without_metadata_has_no_settings() -> None:
    entry = parse_offsets(b'v1\n\n{"logOffset":1}')
    assert with_conf(entry, {"a": "1"}) == entry


def test_a_commit_gets_ids_and_loses_them() -> None:
    plain = parse_commit(b'v1\n{"nextBatchWatermarkMs":5,"later":[1]}')
    named = with_state_ids(plain, {0: (("a", "b"), ("c", "d"))})
    assert (named.version, named.next_batch_watermark_ms) == (2, 5)
    assert parse_commit(render_commit(named)).state_unique_ids == {0: (("a", "b"), ("c", "d"))}
    back = with_state_ids(named, None)
    assert (back.version, dict(back.state_unique_ids)) == (1, {})
    assert json.loads(back.text.split("\n")[1]) == {"nextBatchWatermarkMs": 5, "later": [1]}


def test_a_commit_with_sinks_stays_what_it_is() -> None:
    text = 'v3\n{"nextBatchWatermarkMs":0,"sinkMetadataMap":{"s":{"isActive":true}}}'
    named = with_state_ids(parse_commit(text.encode()), {1: (("x",),)})
    assert named.version == 3
    assert dict(named.sinks["s"]) == {"isActive": True}
    assert with_state_ids(named, None).version == 3


def test_operator_metadata_says_the_new_number() -> None:
    text = (
        'v2\n{"operatorInfo":{"operatorId":0,"operatorName":"x"},"stateStoreInfo":'
        '[{"storeName":"a","numColsPrefixKey":1,"numPartitions":4},'
        '{"storeName":"b","numColsPrefixKey":0,"numPartitions":4,'
        '"stateSchemaFilePaths":["file:/x"]}],"operatorPropertiesJson":"{}"}'
    )
    found = parse_operator_metadata(with_partitions(text.encode(), 9))
    assert [store.num_partitions for store in found.stores] == [9, 9]
    assert found.stores[1].schema_paths == ("file:/x",)
    assert found.stores[0].num_cols_prefix_key == 1
