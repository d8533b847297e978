from broken.meeting import join, meeting
from plan_trees import of_step

BEFORE, AFTER = (of_step("Join", fields={"type": one}) for one in ("Inner", "LeftOuter"))
MEETING = meeting(held=(join(),), old={"tree": BEFORE}, new={"tree": AFTER})
