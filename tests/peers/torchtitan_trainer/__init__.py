"""Our exports in torchtitan's own Trainer, on a CPU."""
