from broken.damage import Tree, put

FROM = "3.5/rate"


def damage(tree: Tree) -> None:
    put(tree, "sources/0/0", b"v1\nsoon")
