"""Schedules side by side: what leads, until what, and the page that shows it."""
