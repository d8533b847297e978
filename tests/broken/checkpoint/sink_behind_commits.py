from broken.damage import Tree
from floodmark.checkpoint.live_answers import LiveAnswers, SinkLog

FROM = "3.5/sales-hdfs"
OUTSIDE = LiveAnswers(sink=SinkLog("s3://lake/totals", "delta", 0))


def damage(tree: Tree) -> None:
    """The checkpoint is whole, and newer than its sink."""
