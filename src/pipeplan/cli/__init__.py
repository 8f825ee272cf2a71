"""The command line: ``pipeplan``."""

from pipeplan.cli.app import main

__all__ = ["main"]
