from broken.meeting import meeting
from plan_trees import plan

MEETING = meeting(new={"tree": plan(watermark=("at", 600_000))})
