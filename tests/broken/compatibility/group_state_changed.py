from broken.meeting import meeting, operator

MEETING = meeting(
    held=(operator("applyInPandasWithState", "user string", "n long, timeoutTimestamp long"),),
    new={
        "operators": (
            operator(
                "applyInPandasWithState", "user string", "n long, m long, timeoutTimestamp long"
            ),
        )
    },
)
