from broken.meeting import join, meeting

MEETING = meeting(held=(join(),), new={"operators": (join(value="user string"),)})
