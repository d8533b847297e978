from broken.damage import Tree, set_conf

FROM = "3.5/sales-hdfs"


def damage(tree: Tree) -> None:
    set_conf(tree, 2, "spark.sql.streaming.stateStore.compression.codec", "zstd")
