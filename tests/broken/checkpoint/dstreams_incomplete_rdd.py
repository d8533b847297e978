from broken.damage import Tree, drop

FROM = "3.5/dstreams"


def damage(tree: Tree) -> None:
    drop(tree, next(path for path in tree if path.endswith("/part-00000")))
