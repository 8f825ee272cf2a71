"""From a model and a cluster to a configuration."""
