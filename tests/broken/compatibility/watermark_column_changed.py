from broken.meeting import meeting
from plan_trees import plan

BEFORE, AFTER = (plan(watermark=(column, 600_000)) for column in ("at", "seen"))
MEETING = meeting(old={"tree": BEFORE}, new={"tree": AFTER})
