from broken.meeting import meeting, operator

MEETING = meeting(
    held=(operator("dedupe", "user string, product string", "dummy void"),),
    new={"operators": (operator("dedupe", "user string", "dummy void"),)},
)
