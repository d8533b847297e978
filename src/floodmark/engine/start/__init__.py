"""One query's start: judged, leased, started, noted."""
