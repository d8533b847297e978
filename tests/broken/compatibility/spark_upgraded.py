from broken.meeting import meeting

MEETING = meeting(old={"spark_version": "3.5.1"})
