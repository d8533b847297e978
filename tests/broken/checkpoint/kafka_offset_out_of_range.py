from broken.damage import Tree
from floodmark.checkpoint.live_answers import LiveAnswers

FROM = "4.2/kafka"
OUTSIDE = LiveAnswers(kafka={"0": {}})


def damage(tree: Tree) -> None:
    """The checkpoint is whole: it is the broker that has no such topic."""
