"""Megatron-Bridge beside us: its configuration takes what a plan's launch script sets."""
