from broken.meeting import PARTITIONS, meeting

MEETING = meeting(new={"conf": {PARTITIONS: "8"}})
