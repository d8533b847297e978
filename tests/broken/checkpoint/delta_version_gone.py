from broken.damage import Tree
from floodmark.checkpoint.live_answers import LiveAnswers, TableLog

FROM = "4.2/delta"
OUTSIDE = LiveAnswers(tables={"0": TableLog("s3://lake/orders", None, 900, 950)})


def damage(tree: Tree) -> None:
    """The checkpoint is whole: it is the table that was cleaned."""
