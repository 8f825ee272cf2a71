"""First-party parts beside the core. Each can be read, tested, handed over or deleted alone."""
