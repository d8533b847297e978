from broken.damage import Tree, put

FROM = "3.5/union"


def damage(tree: Tree) -> None:
    put(tree, "offsets/2", tree["offsets/2"].rsplit(b"\n", 1)[0])
