from broken.damage import Tree, metadata, put_time

FROM = "3.5/rate"


def damage(tree: Tree) -> None:
    first = dict(tree)
    start = metadata(tree, 0)["batchTimestampMs"]
    for batch in range(1_001):
        tree[f"commits/{batch}"] = first["commits/0"]
        tree[f"offsets/{batch}"] = first["offsets/0"]
        put_time(tree, batch, start + batch)
