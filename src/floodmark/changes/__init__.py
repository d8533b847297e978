"""Plans changes as data; only `apply` and `undo` execute a plan."""
