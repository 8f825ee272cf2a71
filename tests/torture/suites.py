"""Every suite there is, a line each."""

from tests.torture.caches import CACHES
from tests.torture.calls import CALLS
from tests.torture.commands import COMMANDS
from tests.torture.disks import DISKS
from tests.torture.homes import HOMES
from tests.torture.hostile_files import FILES
from tests.torture.kills import KILLS
from tests.torture.memory import MEMORY
from tests.torture.schedules import SCHEDULES
from tests.torture.web.markup import MARKUP
from tests.torture.web.suite import WEB
from tests.torture.writers import WRITERS

SUITES = (
    COMMANDS,
    FILES,
    CALLS,
    KILLS,
    DISKS,
    HOMES,
    WRITERS,
    MEMORY,
    CACHES,
    *SCHEDULES,
    WEB,
    MARKUP,
)
