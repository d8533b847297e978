from broken.damage import Tree

FROM = "4.1/join-v3"
PLACE = "/data/checkpoints/copied"


def damage(tree: Tree) -> None:
    assert tree
