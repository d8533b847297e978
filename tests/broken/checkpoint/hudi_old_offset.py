from broken.damage import Tree

FROM = "4.2/delta"


def damage(tree: Tree) -> None:
    """A stream from a Hudi table, as a release before 1.0 writes its place."""
    for batch in (0, 1, 2):
        head, _, _ = tree[f"offsets/{batch}"].rpartition(b"\n")
        tree[f"offsets/{batch}"] = head + b'\n{"commitTime":"2026111605400%d000"}' % batch
