from broken.meeting import meeting, operator
from floodmark.checkpoint.outline import OperatorOutline

MEETING = meeting(held=(OperatorOutline(0, None, {}),), new={"operators": (operator(),)})
