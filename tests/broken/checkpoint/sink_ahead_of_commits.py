from broken.damage import Tree
from floodmark.checkpoint.outside import Outside, SinkLog

FROM = "3.5/sales-hdfs"
OUTSIDE = Outside(sink=SinkLog("s3://lake/totals", "delta", 40))


def damage(tree: Tree) -> None:
    """The checkpoint is whole, and older than its sink."""
