"""The result of a training run."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from pipeplan.costs import Spread
from pipeplan.errors import GradientError
from pipeplan.model import Floats, Schedule, Timeline


@dataclass(frozen=True, eq=False, kw_only=True)
class RunResult:
    """A training run, measured.

    Attributes
    ----------
    timeline
        Every op of the step of median length, in milliseconds from the first start on any rank. A compute op lasts as long
        as it computes; a SEND, as long as it takes to hand it over; a RECV, from its posting until the op that needs it
        found it there. Both ops of an overlapped pair have the pair's time.
    wait
        How long the rank waited at each op before it could compute, in milliseconds, shape (ops,).
    step_seconds
        Every timed step, from the first start to the last end on any rank.
    losses
        Mean over the microbatches, of every step, the untimed ones first.
    max_gradient_difference, max_loss_difference
        The largest absolute differences from the single-process run over all steps, parameters and microbatches; None
        where the run was not verified.
    tolerance
        How much gradients may differ: 0 on a CPU in float32, where kernels and the order of summation are the same.
    peak_bytes
        The most each rank's GPU held; None on a CPU.
    model, device, dtype, threads, torch_version
        What was run, and on what.
    """

    timeline: Timeline
    wait: Floats
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
    def step_spread(self) -> Spread:
        """The quartiles of the timed steps around their median, in seconds."""
        return Spread.of(self.step_seconds)

    @property
    def gradients_equal(self) -> bool | None:
        """Whether the gradients are within the tolerance; None where the run was not verified."""
        if self.max_gradient_difference is None:
            return None
        return self.max_gradient_difference <= self.tolerance

    def require_equal_gradients(self) -> None:
        """Raise where gradients were compared and differ.

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
