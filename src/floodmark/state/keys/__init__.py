"""Which partition a key lives in, and which keys are equal."""
