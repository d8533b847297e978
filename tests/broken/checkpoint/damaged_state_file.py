from broken.damage import Tree, put

FROM = "3.5/sales-hdfs"


def damage(tree: Tree) -> None:
    put(tree, "state/0/1/3.delta", b"")
