"""Benchmarks: ratios measured in one run, beside the known value that they assert."""
