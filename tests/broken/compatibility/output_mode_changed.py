from broken.meeting import meeting

MEETING = meeting(new={"output_mode": "Complete"})
