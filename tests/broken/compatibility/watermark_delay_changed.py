from broken.meeting import meeting
from plan_trees import plan

BEFORE, AFTER = (plan(watermark=("at", delay)) for delay in (600_000, 60_000))
MEETING = meeting(old={"tree": BEFORE}, new={"tree": AFTER})
