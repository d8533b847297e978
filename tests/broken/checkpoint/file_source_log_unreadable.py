from broken.damage import Tree, cut

FROM = "3.5/files"


def damage(tree: Tree) -> None:
    cut(tree, "sources/0/11")
