"""ColossalAI's own V scheduler trains by the nodes that we export, and its gradients are those of one process."""

from collections.abc import Callable
from typing import Any

import pytest

import pipeplan
from tests.peers.colossalai.train import Case
from tests.processes import run_ranks

TIMES = {"forward_times": 3.0, "backward_input_times": 4.0, "backward_weight_times": 2.0, "p2p_time": 0.5}


def cases(ranks: int) -> list[Case]:
    """V schedules with split backwards, published ones and the heuristic's under two limits, F, I and W unlike.

    ColossalAI takes multiples of p microbatches.
    """
    limits = {"zbv": None, "v-half": None, "v-min": None, "zbv-heuristic": f"{ranks}act"}
    found = []
    for name, limit in [*limits.items(), ("zbv-heuristic", f"{1.5 * ranks}act")]:
        for microbatches in (ranks, 3 * ranks):
            given: dict[str, Any] = TIMES | {"ranks": ranks, "microbatches": microbatches, "memory_limit": limit}
            found.append(Case(str(pipeplan.export(name, "zb-nodes", **given)), microbatches))
    return found


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.nightly)])
def test_gradients_are_those_of_one_process(ranks: int, ran: Callable[[str], None]) -> None:
    """ColossalAI sums the loss in single precision."""
    jobs = cases(ranks)
    assert len({job.nodes for job in jobs}) > len(jobs) // 2
    for differences in run_ranks("tests.peers.colossalai.train", ranks, jobs):
        assert max(loss for loss, _ in differences) < 1e-6
        assert max(gradient for _, gradient in differences) < 1e-12
    ran(
        f"ZeroBubbleVPipeScheduler on {ranks} ranks by {len(jobs)} exports of zb-nodes: loss and gradients of one process"
    )
