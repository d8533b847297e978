from broken.damage import Tree, as_version_2, set_conf

FROM = "4.0/sales-hdfs"


def damage(tree: Tree) -> None:
    for batch in range(3):
        set_conf(tree, batch, "spark.sql.shuffle.partitions", None)
        as_version_2(tree, batch)
