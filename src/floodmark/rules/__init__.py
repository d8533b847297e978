"""Rules: what will hurt, told from a checkpoint or from code, each with its story."""
