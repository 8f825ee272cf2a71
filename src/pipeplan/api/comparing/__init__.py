"""Comparisons of schedules: the fastest one, the limits up to which it leads, and the page that shows them."""
