"""What the real sources still have, and where a stream stands in them."""
