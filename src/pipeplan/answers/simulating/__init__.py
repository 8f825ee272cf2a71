"""Simulate a schedule."""
