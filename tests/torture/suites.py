"""Every suite there is, a line each."""

from tests.torture.commands import COMMANDS
from tests.torture.kills import KILLS

SUITES = (COMMANDS, KILLS)
