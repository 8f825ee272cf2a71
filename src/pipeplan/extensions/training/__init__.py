"""Profiles, runs and traces of training, and one's own training loop; runs need PyTorch."""
