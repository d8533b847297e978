from broken.damage import Tree
from floodmark.checkpoint.outside import Outside

FROM = "4.2/kafka"
OUTSIDE = Outside(kafka={"0": {}})


def damage(tree: Tree) -> None:
    """The checkpoint is whole: it is the broker that has no such topic."""
