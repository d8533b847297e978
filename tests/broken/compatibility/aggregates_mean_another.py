from broken.meeting import aggregate, meeting

MEETING = meeting(new={"nodes": (aggregate(("sum(price)", "count(1)")),)})
