from broken.damage import Tree, drop

FROM = "4.2/dstreams"


def damage(tree: Tree) -> None:
    drop(tree, *[path for path in tree if "/rdd-134/" in path])
