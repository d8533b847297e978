from broken.damage import Tree
from floodmark.checkpoint.outside import Outside, SinkLog

FROM = "3.5/sales-hdfs"
OUTSIDE = Outside(sink=SinkLog("s3://lake/totals", "delta", 0))


def damage(tree: Tree) -> None:
    """The checkpoint is whole, and newer than its sink."""
