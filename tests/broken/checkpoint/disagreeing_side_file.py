from broken.damage import Tree

FROM = "3.5/sales-hdfs"


def damage(tree: Tree) -> None:
    tree["sources/0/1"] = tree["sources/0/1"].replace(b'"timestamp":1', b'"timestamp":2')
