from broken.damage import Tree

FROM = "3.5/sales-rocksdb"


def damage(tree: Tree) -> None:
    tree.update((f"state/0/0/SSTs/{at:06}-left.sst", b"") for at in range(100_001))
