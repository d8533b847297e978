from broken.damage import Tree, drop, newest_table

FROM = "3.5/sales-rocksdb"


def damage(tree: Tree) -> None:
    drop(tree, newest_table(tree))
