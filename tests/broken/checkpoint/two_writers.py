from broken.damage import Tree, metadata, set_metadata

FROM = "3.5/sales-hdfs"


def damage(tree: Tree) -> None:
    before = metadata(tree, 1)["batchTimestampMs"]
    set_metadata(tree, 2, batchTimestampMs=before - 60_000)
