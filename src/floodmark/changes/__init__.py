"""Changes as data: planners make a Plan, and only `apply` and `undo` carry one out."""
