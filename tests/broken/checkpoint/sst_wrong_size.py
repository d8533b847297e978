from broken.damage import Tree, cut, newest_table

FROM = "3.5/sales-rocksdb"


def damage(tree: Tree) -> None:
    cut(tree, newest_table(tree))
