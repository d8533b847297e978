import json

from broken.damage import Tree
from floodmark.checkpoint.live_answers import LiveAnswers, SnapshotLine
from rules.examples import golden

FROM = "4.1/iceberg"
STANDS = json.loads(golden(FROM)["offsets/2"].splitlines()[-1])["snapshot_id"]
OUTSIDE = LiveAnswers(
    lines={"0": SnapshotLine("s3://lake/orders", (STANDS,), frozenset({STANDS}), False, began=7)}
)


def damage(tree: Tree) -> None:
    """The checkpoint is whole: the snapshot in which the stream began is expired."""
