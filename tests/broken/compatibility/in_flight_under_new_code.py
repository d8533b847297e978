from broken.meeting import aggregate, meeting

MEETING = meeting(committed=6, new={"nodes": (aggregate(("count(1)",)),)})
