"""Megatron-core beside us."""
