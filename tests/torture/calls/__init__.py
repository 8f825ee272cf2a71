"""Hostile calls of the public functions, made from their own signatures."""

from tests.torture.calls.suite import CALLS

__all__ = ["CALLS"]
