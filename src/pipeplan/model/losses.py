"""The order in which a step computes its losses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeplan.model.op import Kind
from pipeplan.model.schedule import Schedule


def order_of_losses(schedule: Schedule) -> NDArray[np.int32]:
    """Return the microbatches in the order in which the last stage runs their forwards, shape (microbatches,).

    PyTorch's runtime keeps a step's losses in this order and takes the k-th for microbatch k. Of two copies of the model,
    or of a schedule that is not complete, the order is that of the ops in the columns.
    """
    forwards = schedule.where(Kind.F)
    order: NDArray[np.int32] = schedule.columns.microbatch[
        forwards[schedule.columns.stage[forwards] == schedule.stages - 1]
    ]
    return order
