from broken.damage import Tree, replace

FROM = "3.5/files"


def damage(tree: Tree) -> None:
    replace(tree, "offsets/11", '{"logOffset":11}', '{"logOffset":3}')
