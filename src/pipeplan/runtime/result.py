"""What a run gives."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from pipeplan.errors import GradientError
from pipeplan.model import Schedule, Timeline


@dataclass(frozen=True, eq=False, kw_only=True)
class RunResult:
    """A training run, measured.

    Attributes
    ----------
    timeline
        Every op of the step whose length is the median, in milliseconds from its first start on any rank. Of a compute op,
        its computing; of a SEND, handing it over; of a RECV, from its posting until it was found there. Both ops of an
        overlapped pair have the time of the pair.
    wait
        How long the rank stood at each op before it could compute, in milliseconds, shape (ops,).
    step_seconds
        Every timed step, from the first start to the last end on any rank.
    losses
        Mean over the microbatches, of every step, the untimed ones first.
    max_gradient_difference, max_loss_difference
        The largest absolute differences from the single-process run over all steps, parameters and microbatches; None if
        nobody asked.
    tolerance
        What the gradient's difference may be: 0 on a CPU in float32, where kernels and order of summation are the same.
    peak_bytes
        The most each rank's GPU held; None on a CPU.
    model, device, dtype, threads, torch_version
        What was run, on what.
    """

    timeline: Timeline
    wait: NDArray[np.float64]
    step_seconds: tuple[float, ...]
    losses: tuple[float, ...]
    max_gradient_difference: float | None
    max_loss_difference: float | None
    tolerance: float
    peak_bytes: tuple[int, ...] | None
    model: str
    device: str
    dtype: str
    threads: int
    torch_version: str

    @property
    def schedule(self) -> Schedule:
        """What was run, with its communication."""
        return self.timeline.schedule

    @property
    def median_step_seconds(self) -> float:
        """The median of the timed steps."""
        return median(self.step_seconds)

    @property
    def gradients_equal(self) -> bool | None:
        """Whether the gradients are within the tolerance; None if nobody asked."""
        if self.max_gradient_difference is None:
            return None
        return self.max_gradient_difference <= self.tolerance

    def require_equal_gradients(self) -> None:
        """Do nothing where gradients are equal, or were not compared.

        Raises
        ------
        GradientError
            If they differ by more than the tolerance.
        """
        if self.gradients_equal is False:
            raise GradientError(
                f"gradients differ from the single-process run by up to {self.max_gradient_difference:.3g}; "
                f"at most {self.tolerance:.3g} comes from the order of summation"
            )
