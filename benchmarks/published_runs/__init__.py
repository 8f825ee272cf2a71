"""Runs described in rows of a file: their configurations and assumptions for missing fields."""
