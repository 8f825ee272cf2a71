"""Checks of schedules."""
