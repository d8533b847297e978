from broken.meeting import meeting
from plan_trees import plan

MEETING = meeting(new={"tree": plan(keys=("upper(user)",))})
