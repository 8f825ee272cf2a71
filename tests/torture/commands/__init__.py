"""Hostile command lines, made from the commands' own options."""

from tests.torture.commands.suite import COMMANDS

__all__ = ["COMMANDS"]
