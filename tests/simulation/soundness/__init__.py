"""Is a lower bound ever above what is reached? Random instances of every kind, with the best schedules at hand."""
