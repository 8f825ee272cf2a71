"""What ``print()`` of a result shows: its tables for a terminal. Needs rich, which is imported when this is."""
