from broken.damage import Tree

FROM = "3.5/sales-hdfs"
_LEFT = "state/0/0/.4.delta.27a9afcf-0a29-40d8-9ec4-8b3d8c4b8f1c.TID812.tmp"
MTIMES = {_LEFT: 1_000}


def damage(tree: Tree) -> None:
    tree[_LEFT] = b"LZ4Block"
