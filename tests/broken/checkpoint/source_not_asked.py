from broken.damage import Tree
from floodmark.checkpoint.outside import Outside

FROM = "4.2/kafka"
OUTSIDE = Outside(silent={"0": "nothing says where its brokers are"})


def damage(tree: Tree) -> None:
    """The checkpoint is whole: nobody knows its source."""
