"""Explanations of a schedule's idle time, and remedies."""
