"""``review``: what is wrong with a configuration that somebody already has, and the patch."""
