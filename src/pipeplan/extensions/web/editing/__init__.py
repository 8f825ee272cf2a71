"""Schedules edited by hand: whether they still run, and their makespan and memory."""
