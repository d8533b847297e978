from dataclasses import replace

from broken.meeting import meeting
from floodmark.checkpoint.plan.tree import Expression, Input
from plan_trees import of_step


def _code(digest: str):
    function = Expression("PythonUDF", (("function", f'"3.11:{digest}"'), ("name", '"count"')))
    tree = of_step("FlatMapGroupsInPandasWithState")
    step = replace(tree.root.step, expressions=(("functionExpr", (function,)),))
    return replace(tree, root=Input(step))


MEETING = meeting(old={"tree": _code("a")}, new={"tree": _code("b")})
