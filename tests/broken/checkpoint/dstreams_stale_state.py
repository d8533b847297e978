from broken.damage import Tree

FROM = "3.5/dstreams"
_OLD = "11111111-2222-3333-4444-555555555555"
MTIMES = {f"{_OLD}/rdd-7/part-00000": 1_000}


def damage(tree: Tree) -> None:
    tree[f"{_OLD}/rdd-7/part-00000"] = b"state"
