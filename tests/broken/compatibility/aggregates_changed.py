from broken.meeting import meeting, operator

MEETING = meeting(new={"operators": (operator(value="sum double, count long, max long"),)})
