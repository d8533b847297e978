"""Says what a drill tries, compares sinks after a crash, and gives advice. No I/O."""
