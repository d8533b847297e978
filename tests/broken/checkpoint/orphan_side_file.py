from broken.damage import Tree

FROM = "3.5/sales-hdfs"


def damage(tree: Tree) -> None:
    tree["offsets/.3.crc"] = tree["offsets/.2.crc"]
