from broken.damage import Tree, put

FROM = "4.1/sales-hdfs"


def damage(tree: Tree) -> None:
    put(tree, "state/0/0/3.delta", tree["state/0/0/3.delta"] + b"\0")
