"""What Spark would have drawn of new code, so that `migrate` can be planned without Spark."""

from __future__ import annotations

from floodmark.changes.carry.origin import Origin, open_origin
from floodmark.changes.carry.resume_point import UpgradeOptions
from floodmark.changes.matching.operators import MatchOptions
from floodmark.changes.matching.shapes import Aggregate, OperatorShape, StoreShape
from floodmark.changes.plan import Plan, seal
from floodmark.changes.planners.kept_operators import Drawn, Kept, kept_operators
from floodmark.changes.planners.migrate import Migration, plan_migrate
from floodmark.changes.planners.state_layout import StateLayout
from floodmark.checkpoint.plan.tree import PlanTree
from floodmark.state.rows.ddl import struct_json
from floodmark.state.rows.types import parse_struct
from floodmark.state.shapes.operators import Reading, Shape
from floodmark.state.shapes.schema import ColumnFamily, StateSchema, render_schema
from floodmark.storage.files import open_files
from plan_trees import expression, plan

SALES = plan(("sum(amountPaid)", "count(1)"), ("customerId",))
SUM, COUNT, MAX = (
    Aggregate("sum(amountPaid)", 1, (None,), expression("sum(amountPaid)")),
    Aggregate("count(1)", 1, (0,), expression("count(1)")),
    Aggregate("max(amountPaid)", 1, (None,), expression("max(amountPaid)")),
)


def drawn(key: str, value: str, *aggregates: Aggregate, partitions: int = 2) -> Drawn:
    """One aggregation, as Spark would have drawn it."""
    key_json, value_json = struct_json(key), struct_json(value)
    family = ColumnFamily("default", key_json, value_json)
    reading = Reading("default", "default", None, Shape.PAIRS, family)
    store = StoreShape("default", parse_struct(key_json), parse_struct(value_json))
    operator = OperatorShape(0, "stateStoreSave", (store,), aggregates)
    files = {"state/0/0/_metadata/schema": render_schema(StateSchema(2, (family,)))}
    return Drawn((Kept(operator, (reading,), partitions),), files)


def planned(
    old: str,
    new: str,
    goal: Drawn,
    options: MatchOptions | None = None,
    tree: PlanTree | None = SALES,
    layout: StateLayout | None = None,
) -> Plan:
    return seal(carried(open_origin(open_files(old), old), new, goal, options, tree, layout))


def carried(
    origin: Origin,
    new: str,
    goal: Drawn,
    options: MatchOptions | None = None,
    tree: PlanTree | None = SALES,
    layout: StateLayout | None = None,
) -> Plan:
    after = origin.checkpoint.committed_batch
    assert after is not None
    kept = kept_operators(origin.files, origin.checkpoint, after, tree)
    migration = Migration(options or MatchOptions(), layout=layout or StateLayout())
    return plan_migrate(origin, new, UpgradeOptions(), migration, kept, goal)


WIDER = drawn(
    "customerId STRING",
    "max DOUBLE, count BIGINT NOT NULL, sum DOUBLE",
    MAX,
    COUNT,
    SUM,
)
