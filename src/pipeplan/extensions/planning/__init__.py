"""Choice and estimate of configurations: models, GPUs, memory, trainers' flags."""
