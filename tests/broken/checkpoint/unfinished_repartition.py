from broken.damage import Tree, set_conf

FROM = "3.5/in-flight"


def damage(tree: Tree) -> None:
    set_conf(tree, 2, "spark.sql.shuffle.partitions", "5")
