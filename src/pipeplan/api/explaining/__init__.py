"""What a schedule's idle time comes from, and what would help."""
