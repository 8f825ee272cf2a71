"""Review of configurations that users already have."""
