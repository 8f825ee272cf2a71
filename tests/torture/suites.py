"""Every suite there is, a line each."""

from tests.torture.calls import CALLS
from tests.torture.commands import COMMANDS
from tests.torture.hostile_files import FILES
from tests.torture.schedules import SCHEDULES
from tests.torture.web.markup import MARKUP
from tests.torture.web.suite import WEB

SUITES = (
    COMMANDS,
    FILES,
    CALLS,
    *SCHEDULES,
    WEB,
    MARKUP,
)
