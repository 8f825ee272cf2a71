"""List scheduling finds a schedule within every memory limit that allows one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.extensions.search.candidate import Encoder
from pipeplan.extensions.search.engines.list_scheduling import earliest, list_schedule
from tests.extensions.search.problems import PLACEMENTS, problem


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(PLACEMENTS), st.integers(1, 4), st.floats(1.0, 5.0), st.floats(0.0, 60.0), st.integers(0, 99))
def test_it_fits_under_every_feasible_limit(placement, pairs, limit, period, seed):
    case = problem(placement, 2 * pairs, limit=max(limit, placement.copies))
    encoder = Encoder(case)
    due = earliest(encoder) + np.random.default_rng(seed).uniform(0, 30, encoder.classes)
    schedule = encoder.decode(list_schedule(encoder, due, period))
    check(schedule, memory=case.memory_limit).require_valid()
