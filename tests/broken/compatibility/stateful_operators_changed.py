from broken.meeting import meeting, operator

MEETING = meeting(new={"operators": (operator(), operator("dedupe", number=1))})
