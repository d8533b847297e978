"""What a drill tries, how it judges what sinks hold afterwards, and what it advises: no I/O."""
