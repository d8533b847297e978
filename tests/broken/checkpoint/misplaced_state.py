from broken.damage import Tree, put

FROM = "3.5/sales-hdfs"
SHARE = 1.0


def damage(tree: Tree) -> None:
    """Each partition's newest delta in the other's place."""
    first, second = tree["state/0/0/3.delta"], tree["state/0/1/3.delta"]
    put(tree, "state/0/0/3.delta", second)
    put(tree, "state/0/1/3.delta", first)
