from broken.meeting import meeting, operator

HELD = operator("transformWithStateInPandasExec", properties={"timeMode": "None"})
NEW = operator("transformWithStateInPandasExec", properties={"timeMode": "ProcessingTime"})
MEETING = meeting(held=(HELD,), new={"operators": (NEW,)})
