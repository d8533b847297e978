from broken.damage import Tree, drop

FROM = "4.0/sales-hdfs"


def damage(tree: Tree) -> None:
    drop(tree, "state/0/_metadata/metadata")
