from broken.meeting import meeting
from plan_trees import plan

MEETING = meeting(new={"tree": plan(having=("less_than(1, @function 0)",))})
