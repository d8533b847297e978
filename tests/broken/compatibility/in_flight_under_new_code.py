from broken.meeting import meeting
from plan_trees import plan

MEETING = meeting(committed=6, new={"tree": plan(("count(1)",))})
