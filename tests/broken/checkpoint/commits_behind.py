from broken.damage import Tree, drop

FROM = "3.5/sales-hdfs"


def damage(tree: Tree) -> None:
    drop(tree, "commits/1", "commits/2")
