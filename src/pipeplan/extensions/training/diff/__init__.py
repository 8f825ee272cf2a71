"""Comparison of a plan with its run."""
