"""Runs described in rows of a file: their configurations and what the rows leave out."""
