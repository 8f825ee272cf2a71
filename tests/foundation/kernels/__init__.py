"""Kernels: what can be written as C, the library, functions from outside, and every kernel as Python and as C."""
