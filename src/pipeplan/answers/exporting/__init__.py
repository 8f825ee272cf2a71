"""Exports of schedules, and conversions of files."""
