from broken.meeting import PARTITIONS, meeting

MEETING = meeting(
    ('0:{"logOffset":4}',), pins={}, version=2, partitions=3, new={"conf": {PARTITIONS: "1"}}
)
