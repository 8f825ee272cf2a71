"""Configurations whose planned costs come with pipeplan: each file begins with a comment that describes it."""
