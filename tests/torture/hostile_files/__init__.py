"""Honest files, broken, and given to every command that reads such files."""

from tests.torture.hostile_files.suite import FILES

__all__ = ["FILES"]
