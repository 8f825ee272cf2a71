"""All suites of the torture."""

from tests.torture.commands import COMMANDS, FILES
from tests.torture.plans import PLANS
from tests.torture.schedules import SCHEDULES

SUITES = (COMMANDS, FILES, PLANS, *SCHEDULES)
