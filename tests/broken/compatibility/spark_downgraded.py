from broken.meeting import meeting

MEETING = meeting(('0:{"logOffset":4}',), version=2, new={"spark_version": "4.0.1"})
