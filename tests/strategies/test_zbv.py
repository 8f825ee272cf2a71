"""ZB-V works without a pause between a rank's first op and its last once there are enough microbatches."""

import pytest

from pipeplan.costs import Settings
from pipeplan.simulation import simulate
from pipeplan.strategies.zero_bubble import zbv


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 9])
def test_no_rank_pauses_with_at_least_2p_minus_1_microbatches(ranks: int):
    for microbatches in (2 * ranks - 1, 2 * ranks, 3 * ranks + 1):
        schedule = zbv(zbv.shape(ranks, microbatches))
        assert simulate(schedule, Settings().costs(schedule.placement)).timeline.bubble.span == pytest.approx(0)
