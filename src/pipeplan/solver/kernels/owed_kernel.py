"""Where weight backwards go: the one rule for all that places them.

They are in no candidate's order. An I leaves its W owed; first in, first out, the Ws owed by a rank run before one of its
later ops when the candidate forces them to, when that op would not fit into memory without them, or when they fit into the
wait for what that op needs. The rest follows the last op.
"""

from pipeplan.kernels import inlined
from pipeplan.model import Ints


@inlined
def next_owed(owes: Ints, pending: int) -> int:
    """The place of the I whose W is owed the longest, from ``pending`` on; there must be one."""
    while owes[pending] == 0:
        pending += 1
    return pending


@inlined
def runs_before(forced: bool, lacks_room: bool, end: float, arrival: float) -> bool:
    """Whether the W owed the longest, which would end at ``end``, runs before an op whose input is there at ``arrival``."""
    return forced or lacks_room or end <= arrival


@inlined
def preferred_owed(order: Ints, owes: Ints, pending: int, stop: int, op_class: int) -> int:
    """The place of a class's I whose W is owed the longest, from ``pending`` to before ``stop``; else that of any."""
    place = pending
    while place < stop and not (owes[place] == 1 and order[place] == op_class):
        place += 1
    return place if place < stop else next_owed(owes, pending)
