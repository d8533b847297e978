from broken.meeting import meeting

ZONE = "spark.sql.session.timeZone"
MEETING = meeting(old={"conf": {ZONE: "UTC"}}, new={"conf": {ZONE: "Asia/Tokyo"}})
