"""Random schedules for round trips: those of the strategies, over random shapes."""

from hypothesis import assume
from hypothesis import strategies as st

from pipeplan.foundation.errors import ShapeError
from pipeplan.model import Schedule
from pipeplan.strategies import STRATEGIES


@st.composite
def schedules(draw: st.DrawFn, *, slices: int | None = None) -> Schedule:
    strategy = draw(st.sampled_from([rule for rule in STRATEGIES.values() if slices in (None, rule.slices)]))
    chunks = None if strategy.fixed_chunks else draw(st.integers(1, 4))
    try:
        return strategy(strategy.shape(draw(st.integers(1, 5)), draw(st.integers(1, 8)), chunks))
    except ShapeError:
        assume(False)
        raise
