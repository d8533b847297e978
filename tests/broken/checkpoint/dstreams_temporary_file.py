from broken.damage import Tree

FROM = "3.5/dstreams"
MTIMES = {"temp": 1_000}


def damage(tree: Tree) -> None:
    tree["temp"] = b"LZ4Block"
