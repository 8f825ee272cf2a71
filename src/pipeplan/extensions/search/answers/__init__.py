"""Searched schedules, fronts, and what they gain over the published ones."""
