"""Old state and new code: what is carried, what is filled, and what is refused with words."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from floodmark.changes.matching.aggregates import with_columns
from floodmark.changes.matching.fields import ColumnOptions
from floodmark.changes.matching.operators import Matching, MatchOptions, match
from floodmark.changes.matching.shapes import Aggregate, OperatorShape, StoreShape
from floodmark.errors import FloodmarkError, NotCarried, WrongUse
from floodmark.state.rows.ddl import struct_json
from floodmark.state.rows.types import Struct, arrow_type, parse_struct
from floodmark.state.shapes.reshape import Reshaping
from floodmark.statestore.rewrite.target_json import recipe_from_json
from floodmark.wire import to_wire

INITIAL: dict[str, tuple[Any, ...]] = {
    "sum": (None,),
    "count": (0,),
    "max": (None,),
    "avg": (0.0, 0),
}


def struct(text: str) -> Struct:
    return parse_struct(struct_json(text))


def operator(
    key: str, value: str, *functions: str, name: str | None = "stateStoreSave", number: int = 0
) -> OperatorShape:
    found = with_columns(functions, struct(value)) if functions else None
    aggregates = None
    if found is not None:
        aggregates = tuple(
            Aggregate(one.function, one.columns, INITIAL.get(one.name)) for one in found
        )
    return OperatorShape(
        number, name, (StoreShape("default", struct(key), struct(value)),), aggregates
    )


def matched(
    old: OperatorShape, new: OperatorShape, options: MatchOptions | None = None
) -> Matching:
    return match([old], [new], options or MatchOptions())


def carried(
    old: OperatorShape,
    new: OperatorShape,
    key: dict[str, Any],
    value: dict[str, Any],
    options: MatchOptions | None = None,
) -> tuple[Any, Any]:
    """One row of the old state, as the new code finds it."""
    (store,) = matched(old, new, options).operators[0].stores
    assert store.recipe is not None
    recipe = recipe_from_json(to_wire(store.recipe))  # as a saved plan gives it back
    reshaping = Reshaping(recipe, store.new.key, store.new.value)
    keys, values = reshaping.rows(
        pa.array([key], arrow_type(store.old.key)), pa.array([value], arrow_type(store.old.value))
    )
    return keys.to_pylist()[0], values.to_pylist()[0]


OLD = operator("k STRING", "sum BIGINT, count BIGINT NOT NULL", "sum(v)", "count(1)")
ROW: tuple[dict[str, Any], dict[str, Any]] = ({"k": "a"}, {"sum": 5, "count": 2})


def test_an_added_aggregate_starts_where_a_new_key_would() -> None:
    new = OperatorShape(
        0,
        "stateStoreSave",
        (
            StoreShape(
                "default",
                struct("k STRING"),
                struct("sum BIGINT, count BIGINT NOT NULL, max BIGINT, cnt BIGINT NOT NULL"),
            ),
        ),
        (
            Aggregate("sum(v)", 1, (None,)),
            Aggregate("count(1)", 1, (0,)),
            Aggregate("max(v)", 1, (None,)),
            Aggregate("count(w)", 1, (0,)),
        ),
    )
    assert carried(OLD, new, *ROW) == (
        {"k": "a"},
        {"sum": 5, "count": 2, "max": None, "cnt": 0},
    )


def test_aggregates_are_told_apart_by_function_and_input() -> None:
    old = operator("k STRING", "sum BIGINT, sum BIGINT", "sum(a)", "sum(b)")
    new = operator("k STRING", "sum BIGINT, sum BIGINT", "sum(b)", "sum(a)")
    _, value = carried(old, new, {"k": "x"}, {"sum": 1, "sum_2": 2})
    assert value == {"sum": 2, "sum_2": 1}


def test_a_removed_aggregate_is_left_out_and_said() -> None:
    new = operator("k STRING", "count BIGINT NOT NULL", "count(1)")
    assert carried(OLD, new, *ROW)[1] == {"count": 2}
    assert any("sum(v) is left out" in note for note in matched(OLD, new).notes)


def test_without_a_plan_names_that_stand_once_are_enough() -> None:
    old = operator("k STRING", "sum BIGINT, count BIGINT NOT NULL")
    new = operator("k STRING", "count BIGINT NOT NULL, max BIGINT", "count(1)", "max(v)")
    assert carried(old, new, *ROW)[1] == {"count": 2, "max": None}


def test_without_a_plan_two_sums_are_refused_until_told() -> None:
    old = operator("k STRING", "sum BIGINT, sum BIGINT")
    new = operator(
        "k STRING", "sum BIGINT, sum BIGINT, count BIGINT", "sum(b)", "sum(a)", "count(1)"
    )
    with pytest.raises(NotCarried, match="2 columns named sum") as refused:
        matched(old, new)
    assert "--from-app" in refused.value.do
    options = MatchOptions(ColumnOptions({"sum": "sum_2", "sum_2": "sum"}))
    assert carried(old, new, {"k": "x"}, {"sum": 1, "sum_2": 2}, options)[1] == {
        "sum": 2,
        "sum_2": 1,
        "count": 0,
    }


def test_half_an_average_is_refused() -> None:
    old = operator("k STRING", "sum DOUBLE")
    new = operator("k STRING", "sum DOUBLE, count BIGINT", "avg(v)")
    with pytest.raises(NotCarried, match=r"avg\(v\) keeps sum and count"):
        matched(old, new)


def test_another_input_of_the_same_function_is_asked_about() -> None:
    new = operator("k STRING", "sum BIGINT, count BIGINT NOT NULL", "sum(w)", "count(1)")
    with pytest.raises(NotCarried, match=r"sum\(v\), the new one sum\(w\)") as refused:
        matched(OLD, new)
    assert "--rename v=w" in refused.value.do
    assert carried(OLD, new, *ROW, MatchOptions(ColumnOptions({"w": "v"})))[1] == ROW[1]
    anew = MatchOptions(ColumnOptions(defaults={"sum": 0}))
    assert carried(OLD, new, *ROW, anew)[1] == {"sum": 0, "count": 2}


@pytest.mark.parametrize(
    ("before", "after", "value", "expected"),
    [
        ("max INT", "max BIGINT", 7, 7),
        ("max FLOAT", "max DOUBLE", 0.5, 0.5),
        ("max BIGINT", "max DOUBLE", 3, 3.0),
        ("max STRUCT<a: INT>", "max STRUCT<a: BIGINT>", {"a": 1}, {"a": 1}),
    ],
)
def test_types_widen(before: str, after: str, value: Any, expected: Any) -> None:
    old, new = operator("k STRING", before), operator("k STRING", after)
    assert carried(old, new, {"k": "a"}, {"max": value})[1] == {"max": expected}


@pytest.mark.parametrize(
    ("before", "after"), [("BIGINT", "INT"), ("STRING", "INT"), ("DECIMAL(10,2)", "DECIMAL(9,2)")]
)
def test_types_that_narrow_are_refused(before: str, after: str) -> None:
    with pytest.raises(NotCarried, match="would be"):
        matched(operator("k STRING", f"max {before}"), operator("k STRING", f"max {after}"))


def test_a_long_that_no_double_holds_is_refused_by_its_value() -> None:
    old, new = operator("k STRING", "max BIGINT"), operator("k STRING", "max DOUBLE")
    with pytest.raises(NotCarried, match="does not fit DOUBLE"):
        carried(old, new, {"k": "a"}, {"max": 2**60 + 1})


def test_a_null_where_none_may_be_is_shown_with_its_key() -> None:
    old = operator("k STRING", "max BIGINT")
    new = operator("k STRING", "max BIGINT NOT NULL")
    assert carried(old, new, {"k": "a"}, {"max": 1})[1] == {"max": 1}
    with pytest.raises(NotCarried, match="must not be null") as refused:
        carried(old, new, {"k": "the one"}, {"max": None})
    assert "the one" in refused.value.why


def test_a_new_column_that_may_not_be_null_needs_a_value() -> None:
    old = operator("k STRING", "groupState STRUCT<a: BIGINT>", name="applyInPandasWithState")
    new = operator(
        "k STRING",
        "groupState STRUCT<a: BIGINT, b: STRING NOT NULL>",
        name="applyInPandasWithState",
    )
    with pytest.raises(NotCarried, match=r"groupState\.b"):
        matched(old, new)
    options = MatchOptions(ColumnOptions(defaults={"groupState.b": "x"}))
    row = ({"k": "a"}, {"groupState": {"a": 1}})
    assert carried(old, new, *row, options)[1] == {"groupState": {"a": 1, "b": "x"}}


def test_a_finer_key_is_refused() -> None:
    new = operator(
        "k STRING, city STRING", "sum BIGINT, count BIGINT NOT NULL", "sum(v)", "count(1)"
    )
    with pytest.raises(NotCarried, match="a column city"):
        matched(OLD, new)


def test_another_key_of_the_same_type_is_not_taken_for_a_renamed_one() -> None:
    new = operator("city STRING", "sum BIGINT, count BIGINT NOT NULL", "sum(v)", "count(1)")
    with pytest.raises(NotCarried, match="a column city"):
        matched(OLD, new)
    assert carried(OLD, new, *ROW, MatchOptions(ColumnOptions({"city": "k"})))[0] == {"city": "a"}


def test_spelling_is_no_other_name() -> None:
    old = operator("customerId STRING", "count BIGINT", "count(1)")
    new = operator("customer_id STRING", "count BIGINT", "count(1)")
    assert carried(old, new, {"customerId": "c"}, {"count": 1})[0] == {"customer_id": "c"}


def test_fewer_keys_need_a_merge_for_every_column() -> None:
    old = operator("k STRING, city STRING", "sum BIGINT, max BIGINT", "sum(v)", "max(v)")
    new = operator("k STRING", "sum BIGINT, max BIGINT", "sum(v)", "max(v)")
    with pytest.raises(NotCarried, match="sum, max of keys that become one"):
        matched(old, new)
    options = MatchOptions(merge={"sum": "sum", "max": "max"})
    (store,) = matched(old, new, options).operators[0].stores
    assert store.recipe is not None
    assert store.recipe.merge == {"sum": "sum", "max": "max"}
    with pytest.raises(WrongUse, match="the rules are sum, min, max, any"):
        matched(old, new, MatchOptions(merge={"sum": "concat", "max": "max"}))


def test_a_merge_without_need_is_wrong_use() -> None:
    with pytest.raises(WrongUse, match="no keys become one"):
        matched(OLD, OLD, MatchOptions(merge={"sum": "sum"}))


def test_fewer_columns_of_a_deduplication_need_nothing() -> None:
    old = operator("a STRING, b STRING", "__dummy__ VOID", name="dedupe")
    new = operator("a STRING", "__dummy__ VOID", name="dedupe")
    (store,) = matched(old, new).operators[0].stores
    assert store.recipe is not None
    assert store.recipe.merge == {"__dummy__": "min"}


def test_a_session_cannot_lose_a_key() -> None:
    old = operator(
        "a STRING, b STRING, sessionStartTime TIMESTAMP",
        "count BIGINT",
        name="sessionWindowStateStoreSaveExec",
    )
    new = operator(
        "a STRING, sessionStartTime TIMESTAMP",
        "count BIGINT",
        name="sessionWindowStateStoreSaveExec",
    )
    with pytest.raises(NotCarried, match="the key has no b any more"):
        matched(old, new)


def test_format_1_repeats_the_key_in_the_value() -> None:
    old = operator("k STRING", "k STRING, sum BIGINT", "sum(v)")
    new = operator("k STRING", "sum BIGINT", "sum(v)")
    assert carried(old, new, {"k": "a"}, {"k": "a", "sum": 1})[1] == {"sum": 1}
    assert carried(new, old, {"k": "a"}, {"sum": 1})[1] == {"k": "a", "sum": 1}


def test_a_removed_operator_must_be_accepted_and_an_added_one_is_said() -> None:
    dedup = operator("id STRING", "__dummy__ VOID", name="dedupe", number=1)
    with pytest.raises(NotCarried, match="would be dropped"):
        match([OLD, dedup], [OLD], MatchOptions())
    found = match([OLD, dedup], [OLD], MatchOptions(accept=frozenset({"dropped-operator"})))
    assert found.removed == (dedup,)
    added = match([OLD], [OLD, dedup], MatchOptions())
    assert added.operators[1].old is None
    assert any("starts empty" in note for note in added.notes)


def test_two_of_a_kind_and_one_are_not_guessed_at() -> None:
    other = operator("id STRING", "count BIGINT", "count(1)", number=1)
    with pytest.raises(NotCarried, match="which of them is which"):
        match([OLD, other], [OLD], MatchOptions(accept=frozenset({"dropped-operator"})))


def _join(left: str, right: str) -> OperatorShape:
    stores = []
    for side, columns in (("left", left), ("right", right)):
        stores.append(
            StoreShape(f"{side}-keyToNumValues", struct("k STRING"), struct("value BIGINT"))
        )
        key, value = struct("k STRING, index BIGINT"), struct(f"{columns}, matched BOOLEAN")
        stores.append(StoreShape(f"{side}-keyWithIndexToValue", key, value))
    return OperatorShape(0, "symmetricHashJoin", tuple(stores))


def test_sides_that_changed_places_are_not_taken_for_each_other() -> None:
    old = _join("k STRING, paid DOUBLE", "k STRING, seen TIMESTAMP")
    with pytest.raises(NotCarried, match="its sides have changed places"):
        matched(old, _join("k STRING, seen TIMESTAMP", "k STRING, paid DOUBLE"))
    with pytest.raises(NotCarried, match="no column of left-keyWithIndexToValue"):
        matched(old, _join("b STRING, c DOUBLE", "k STRING, seen TIMESTAMP"))
    twin = _join("k STRING, paid DOUBLE", "k STRING, paid DOUBLE")
    assert len(matched(twin, twin).operators[0].stores) == 4
    more = matched(old, _join("k STRING, paid DOUBLE, at DATE", "k STRING, seen TIMESTAMP"))
    assert any("left side: at is new" in note for note in more.notes)


def test_variables_come_and_go() -> None:
    def variables(*names: str) -> OperatorShape:
        stores = tuple(StoreShape(name, struct("k STRING"), struct("n BIGINT")) for name in names)
        return OperatorShape(0, "transformWithStateInPandasExec", stores)

    with pytest.raises(NotCarried, match="the variable old: that would be dropped"):
        matched(variables("total", "old"), variables("total", "fresh"))
    accept = MatchOptions(accept=frozenset({"dropped-field"}))
    found = matched(variables("total", "old"), variables("total", "fresh"), accept)
    assert [store.store for store in found.operators[0].stores] == ["total"]
    assert "fresh is new" in " ".join(found.notes)
    assert "old is left out" in " ".join(found.notes)


def test_a_field_of_a_groups_state_is_not_dropped_without_a_word() -> None:
    def groups(fields: str) -> OperatorShape:
        store = StoreShape("default", struct("k STRING"), struct(f"groupState STRUCT<{fields}>"))
        return OperatorShape(0, "applyInPandasWithState", (store,))

    old, new = groups("n: BIGINT, last: STRING"), groups("n: BIGINT")
    with pytest.raises(NotCarried, match="not keep last: that would be dropped"):
        matched(old, new)
    assert matched(old, new, MatchOptions(accept=frozenset({"dropped-field"}))).operators


@pytest.mark.parametrize("has", [True, False])
def test_a_ttl_that_comes_or_goes_is_refused(has: bool) -> None:
    def variable(value: str) -> OperatorShape:
        store = StoreShape("total", struct("k STRING"), struct(value))
        return OperatorShape(0, "transformWithStateInPandasExec", (store,))

    plain, expiring = (
        variable("n BIGINT"),
        variable("value STRUCT<n: BIGINT>, ttlExpirationMs BIGINT"),
    )
    old, new = (plain, expiring) if has else (expiring, plain)
    with pytest.raises(NotCarried, match="TTL in the new code"):
        matched(old, new)


@pytest.mark.parametrize(
    "told",
    [
        ColumnOptions(defaults={"nosuch": 1}),
        ColumnOptions({"nosuch": "sum"}),
        ColumnOptions({"sum": "nosuch"}),
    ],
)
def test_a_misspelt_name_is_wrong_use(told: ColumnOptions) -> None:
    with pytest.raises(FloodmarkError, match="nosuch"):
        matched(OLD, OLD, MatchOptions(told))
