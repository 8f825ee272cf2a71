"""Random plans for the properties of passes: every strategy on small shapes."""

from hypothesis import strategies as st

from pipeplan.model import HOST_KINDS, Schedule, among
from pipeplan.strategies import STRATEGIES


def _plan(name: str, half: int, more: int) -> Schedule:
    return even_plan(name, 2 * half, 4 * half + 2 * more)


def even_plan(name: str, ranks: int, microbatches: int) -> Schedule:
    """The schedule of an even number of ranks and microbatches; of fewer if the strategy needs a multiple of the ranks."""
    strategy = STRATEGIES[name]
    left = microbatches % ranks if name == "bitpipe" else 0
    return strategy(strategy.shape(ranks, microbatches - left))


_NAMES = sorted(name for name, rule in STRATEGIES.items() if not rule.recomputes)

PLANS = st.builds(_plan, st.sampled_from(_NAMES), st.integers(1, 3), st.integers(0, 4))
"""Even ranks, and enough microbatches for every strategy; none recomputes on its own."""


def without_copies(schedule: Schedule) -> Schedule:
    """The schedule without its OFFLOADs and RELOADs."""
    return schedule.keep(~among(schedule.columns.kind, HOST_KINDS))
