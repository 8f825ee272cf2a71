"""The best configuration: what is legal, what bounds rule out, what is estimated, and why the others lost."""
