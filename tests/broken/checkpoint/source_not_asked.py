from broken.damage import Tree
from floodmark.checkpoint.live_answers import LiveAnswers

FROM = "4.2/kafka"
OUTSIDE = LiveAnswers(silent={"0": "its brokers are not known"})


def damage(tree: Tree) -> None:
    """The checkpoint is whole: nobody knows its source."""
