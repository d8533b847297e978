from broken.damage import Tree
from floodmark.checkpoint.live_answers import LiveAnswers

FROM = "3.5/in-flight"
OUTSIDE = LiveAnswers(inputs={"0": ("file:///in/2.json",)})


def damage(tree: Tree) -> None:
    """The checkpoint is whole: it is the input that was tidied up."""
