from broken.damage import Tree, as_version_2

FROM = "3.5/rate"


def damage(tree: Tree) -> None:
    as_version_2(tree, 2)
