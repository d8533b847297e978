from broken.damage import Tree, drop

FROM = "3.5/files"


def damage(tree: Tree) -> None:
    drop(tree, "sources/0/10")
