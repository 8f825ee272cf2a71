"""Every suite there is, a line each."""

from tests.torture.commands import COMMANDS

SUITES = (COMMANDS,)
