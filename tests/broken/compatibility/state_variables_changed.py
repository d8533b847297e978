from broken.meeting import meeting, operator

TOTAL = {"stateName": "total", "stateVariableType": "ValueState"}

HELD = operator(
    "transformWithStateInPandasExec",
    families={"total": ("user string", "n long")},
    properties={"stateVariables": [TOTAL]},
)
NEW = operator(
    "transformWithStateInPandasExec",
    families={"total": ("user string", "n string")},
    properties={"stateVariables": [TOTAL]},
)
MEETING = meeting(held=(HELD,), new={"operators": (NEW,)})
