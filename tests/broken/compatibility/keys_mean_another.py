from broken.meeting import meeting, operator

MEETING = meeting(new={"operators": (operator(key="product string"),)})
