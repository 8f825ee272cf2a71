"""Would PyTorch's runtime take each microbatch's own loss?

The runtime keeps a step's losses in the order in which the last stage computes them, and starts the backward of microbatch k
from the k-th of them. Where the last stage takes microbatches in another order than that of their numbers, gradients are
wrong without a word. pipeplan's own runtime keeps losses by the number of their microbatch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeplan.checking.problem import Problem
from pipeplan.model import Kind, Schedule, order_of_losses


def check_losses(schedule: Schedule) -> Iterator[Problem]:
    """Yield the first forward of the last stage that is out of order. Needs a right structure."""
    if schedule.placement.copies > 1 or schedule.slices > 1:
        return
    taken = order_of_losses(schedule)
    wrong = np.flatnonzero(taken != np.arange(len(taken)))
    if not wrong.size:
        return
    number = int(wrong[0])
    forwards = schedule.where(Kind.F)
    position = int(forwards[schedule.columns.stage[forwards] == schedule.stages - 1][number])
    message = (
        f"is forward {number} of the last stage: PyTorch keeps losses in the order in which they are computed and would "
        f"take this one for microbatch {number}, so that gradients are wrong; export --to torch-csv renumbers microbatches"
    )
    yield Problem("losses", schedule.place(position), message, position)
