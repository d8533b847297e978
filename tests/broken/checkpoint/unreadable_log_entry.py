from broken.damage import Tree, cut

FROM = "3.5/sales-hdfs"


def damage(tree: Tree) -> None:
    cut(tree, "offsets/2")
