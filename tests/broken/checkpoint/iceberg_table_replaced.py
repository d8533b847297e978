from broken.damage import Tree
from floodmark.checkpoint.live_answers import LiveAnswers, SnapshotLine

FROM = "4.1/iceberg"
OUTSIDE = LiveAnswers(
    lines={"0": SnapshotLine("s3://lake/orders", (9, 8), frozenset({9, 8}), True)}
)


def damage(tree: Tree) -> None:
    """The checkpoint is whole: it is the table that is another one."""
