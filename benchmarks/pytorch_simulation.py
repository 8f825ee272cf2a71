"""PyTorch's own way from a schedule class to a simulated schedule. Touches its private parts, for the benchmark alone."""

from __future__ import annotations

from torch.distributed.pipelining import schedules
from torch.distributed.pipelining.schedules import ScheduleInterleavedZeroBubble


class _Stage:
    """As much of a stage as building an order needs."""

    def __init__(self, index: int, stages: int, ranks: int) -> None:
        self.stage_index, self.num_stages, self.group_size, self.group_rank = index, stages, ranks, index % ranks
        self.is_first, self.is_last = index == 0, index == stages - 1
        self.has_backward = True
        self.submod = None
        self.stage_index_to_group_rank = {stage: stage % ranks for stage in range(stages)}
        self.group = None
        self.device = None


def build_lower_simulate(ranks: int, microbatches: int, chunks: int) -> int:
    """InterleavedZeroBubble: every rank's order, lowered to sends and receives, simulated; how many steps that took."""
    stages = ranks * chunks
    order = ScheduleInterleavedZeroBubble(
        [_Stage(chunk * ranks, stages, ranks) for chunk in range(chunks)],  # type: ignore[misc]
        microbatches,
        loss_fn=lambda output, target: output,
    ).pipeline_order
    compute = {rank: [action for action in actions if action is not None] for rank, actions in order.items()}
    lowered = schedules._add_send_recv(compute, lambda stage: stage % ranks, stages)
    simulated = schedules._simulate_comms_compute(lowered, lambda stage: stage % ranks, stages)
    return max(len(actions) for actions in simulated.values())
