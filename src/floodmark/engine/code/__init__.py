"""What code is: its plan and its functions, drawn, compared and rehearsed."""
