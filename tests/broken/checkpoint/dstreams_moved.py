from broken.damage import Tree

FROM = "4.2/dstreams"
PLACE = "/data/checkpoints/copied"


def damage(tree: Tree) -> None:
    assert tree
