from broken.damage import Tree, cut

FROM = "3.5/dstreams"


def damage(tree: Tree) -> None:
    cut(tree, max(path for path in tree if path.startswith("checkpoint-")))
