from broken.damage import Tree, drop

FROM = "3.5/sales-hdfs"


def damage(tree: Tree) -> None:
    drop(tree, "state/0/1/3.delta")
