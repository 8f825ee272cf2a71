"""``review``: what is wrong with an existing configuration, and the patch."""
