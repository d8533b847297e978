"""Old operators and columns matched to new ones. Pure."""
