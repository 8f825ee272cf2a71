"""Hugging Face Transformers beside us."""
