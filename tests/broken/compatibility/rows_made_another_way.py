from broken.meeting import meeting
from plan_trees import of_step

BEFORE, AFTER = (
    of_step("Deduplicate", keys=("item",), generator=(f"explode({one})",)) for one in ("xs", "ys")
)
MEETING = meeting(old={"tree": BEFORE}, new={"tree": AFTER})
