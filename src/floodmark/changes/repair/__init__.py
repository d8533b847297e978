"""Contains what `repair` can do about a finding: one module for each kind of fault."""
