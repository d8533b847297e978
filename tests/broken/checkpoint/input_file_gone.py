from broken.damage import Tree
from floodmark.checkpoint.outside import Outside

FROM = "3.5/in-flight"
OUTSIDE = Outside(inputs={"0": ("file:///in/2.json",)})


def damage(tree: Tree) -> None:
    """The checkpoint is whole: it is the input that was tidied up."""
