"""Ways to find schedules, each an engine that offers what it finds to the run."""
