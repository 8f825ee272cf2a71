"""PyTorch's FSDP2 beside us."""
