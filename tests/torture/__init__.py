"""Hostile input of every kind, made from seeds, as long as one likes: ``python -m tests.torture`` (``make torture``)."""
