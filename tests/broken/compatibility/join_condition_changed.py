from broken.meeting import join, meeting
from plan_trees import of_step

BEFORE, AFTER = (of_step("Join", condition=(f"equal_to(a, {one})",)) for one in "bc")
MEETING = meeting(held=(join(),), old={"tree": BEFORE}, new={"tree": AFTER})
