"""Studies: schedules simulated on all combinations of several settings."""
