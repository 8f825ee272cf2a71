"""Comparisons of schedules: the fastest one, the least bound, and the page that shows them."""
