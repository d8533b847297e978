from broken.damage import Tree
from floodmark.checkpoint.live_answers import LiveAnswers, SinkLog

FROM = "4.1/iceberg"
OUTSIDE = LiveAnswers(sink=SinkLog("s3://lake/copy", "iceberg", None))


def damage(tree: Tree) -> None:
    """The checkpoint is whole: it is the sink that has forgotten its batches."""
