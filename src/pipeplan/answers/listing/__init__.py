"""Lists of what is built in."""
