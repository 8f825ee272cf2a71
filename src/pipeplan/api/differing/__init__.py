"""A plan beside its run."""
