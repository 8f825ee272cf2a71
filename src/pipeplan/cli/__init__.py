"""The command line: ``pipeplan``."""

from pipeplan.cli.process import main

__all__ = ["main"]
