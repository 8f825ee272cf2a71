"""DeepSpeed beside us."""
