"""A function for each construct of Python that kernels may use; see ``test_writer.py``."""
