"""What `repair` can do about a finding: a module a kind of trouble, the gentlest first."""
