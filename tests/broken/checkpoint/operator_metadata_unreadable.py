from broken.damage import Tree, cut

FROM = "4.0/sales-hdfs"


def damage(tree: Tree) -> None:
    cut(tree, "state/0/_metadata/metadata")
