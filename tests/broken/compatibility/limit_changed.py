from broken.meeting import meeting
from plan_trees import of_step

BEFORE, AFTER = (of_step("GlobalLimit", limitExpr=(number,)) for number in ("5", "7"))
MEETING = meeting(old={"tree": BEFORE}, new={"tree": AFTER})
