"""The demonstration: a sales pipeline that is killed in the middle of a batch and loses nothing."""
