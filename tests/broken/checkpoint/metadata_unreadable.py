from broken.damage import Tree, put

FROM = "3.5/sales-hdfs"


def damage(tree: Tree) -> None:
    put(tree, "metadata", b"")
