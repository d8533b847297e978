from broken.meeting import meeting, operator

MEETING = meeting(new={"operators": (operator(key="user long"),)})
