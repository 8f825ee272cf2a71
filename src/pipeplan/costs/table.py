"""What a schedule's ops cost on one model and machine: times per stage, a transfer, and bytes held."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipeplan.errors import CostError
from pipeplan.model import Floats, Kind, Placement, Schedule
from pipeplan.model.quantities import require_range


@dataclass(frozen=True, slots=True)
class Transfer:
    """A message between two different ranks: latency + bytes / bandwidth, in the unit of the times.

    Raises
    ------
    CostError
        For a part that is negative, not finite, or too large to be reckoned with.
    """

    latency: float = 0.0
    bytes: float = 0.0
    bandwidth: float = np.inf

    def __post_init__(self) -> None:
        if not (0 <= self.latency < np.inf and 0 <= self.bytes < np.inf):
            raise CostError(f"a transfer's latency and bytes are at least 0 and finite: {self.latency}, {self.bytes}")
        if not self.bandwidth > 0:
            raise CostError(f"a transfer's bandwidth must be more than 0, not {self.bandwidth}")
        require_range("latency of a transfer", self.latency)
        require_range("p2p bytes", self.bytes)
        if np.isfinite(self.bandwidth):
            require_range("bandwidth", self.bandwidth)
            require_range("p2p bytes / bandwidth", self.bytes / self.bandwidth)

    def time(self, slices: int = 1) -> float:
        """How long one microbatch's message takes, or one of its ``slices``' messages."""
        return self.latency + self.bytes / slices / self.bandwidth


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """What stages hold, each array of shape (stages,).

    Attributes
    ----------
    activation
        Held from a forward's start for one microbatch; bytes, or activations where nobody gave bytes.
    freed_by_weight
        The part of it that only W frees; I frees the rest, B all of it. Negative rests are allowed: I then adds.
    static
        Parameters, gradients and optimizer state of one copy of the stage, in bytes.
    in_bytes
        Whether ``activation`` is in bytes.

    Raises
    ------
    CostError
        For a size that is too large or too small to be reckoned with.
    """

    activation: Floats
    freed_by_weight: Floats
    static: Floats
    in_bytes: bool

    def __post_init__(self) -> None:
        require_range("activation bytes", self.activation, divides=True)
        require_range("weight activation bytes", self.freed_by_weight)
        require_range("static bytes", self.static)


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Times per stage, each array of shape (stages,) in one unit of time for one whole microbatch.

    Attributes
    ----------
    forward, backward, backward_input, backward_weight, recompute
        How long F, B, I, W and R take.
    overlap
        How long a forward of the stage takes together with the backward it overlaps with; None: the sum of the two.
    transfer
        A message between different ranks.
    memory
        What is held.
    time_unit
        For axes and tables; empty where nobody said.

    Raises
    ------
    CostError
        For a time that is not more than 0 and finite, or too large or too small to be reckoned with; arrays of different
        lengths; an overlap below its longer half.
    """

    forward: Floats
    backward: Floats
    backward_input: Floats
    backward_weight: Floats
    recompute: Floats
    memory: Memory
    overlap: Floats | None = None
    transfer: Transfer = field(default_factory=Transfer)
    time_unit: str = ""

    def __post_init__(self) -> None:
        for name in ("forward", "backward", "backward_input", "backward_weight", "recompute", "overlap"):
            times = getattr(self, name)
            if times is not None:
                self._check_times(name.replace("_", " "), times)
        if self.overlap is not None:
            longer = np.maximum(self.forward, self.backward)
            if (short := np.flatnonzero(self.overlap < longer)).size:
                stage = int(short[0])
                raise CostError(
                    f"overlap time {self.overlap[stage]:g} of stage {stage} is below its longer half, {longer[stage]:g}"
                )

    def _check_times(self, name: str, times: Floats) -> None:
        if len(times) != len(self.forward):
            raise CostError(f"{name} times: {len(times)} values for {len(self.forward)} stages")
        wrong = np.flatnonzero(~((times > 0) & (times < np.inf)))
        if wrong.size:
            stage = int(wrong[0])
            raise CostError(f"{name} time of stage {stage} must be more than 0 and finite, not {times[stage]:g}")
        require_range(f"{name} time", times, divides=True)

    @property
    def stages(self) -> int:
        """How many stages the costs are for."""
        return len(self.forward)

    def durations(self, schedule: Schedule) -> Floats:
        """How long each op occupies its rank, shape (ops,); communication and stage-wide ops take 0.

        Overlapped ops both get their pair's time. A slice takes its share of the microbatch's.

        Raises
        ------
        CostError
            If the schedule has another number of stages than the costs.
        """
        if schedule.stages != self.stages:
            raise CostError(f"costs for {self.stages} stages do not fit a schedule of {schedule.stages} stages")
        table = np.zeros((len(Kind), self.stages))
        table[Kind.F], table[Kind.B] = self.forward, self.backward
        table[Kind.I], table[Kind.W] = self.backward_input, self.backward_weight
        table[Kind.R] = self.recompute
        columns = schedule.columns
        times = table[columns.kind, columns.stage]
        second = np.flatnonzero(schedule.joined)
        if second.size:
            times[second] = times[second - 1] = self._pair_times(schedule, second, times)
        return times / schedule.slices if schedule.slices > 1 else times

    def _pair_times(self, schedule: Schedule, second: NDArray[np.intp], times: Floats) -> Floats:
        """The time of each overlapped pair, given the position of its second op."""
        first = second - 1
        if self.overlap is None:
            pairs: Floats = times[first] + times[second]
            return pairs
        forward = np.where(schedule.columns.kind[first] == Kind.F, first, second)
        together = self.overlap[schedule.columns.stage[forward]]
        return np.maximum(together, np.maximum(times[first], times[second]))


def per_stage(
    value: float | tuple[float, ...],
    placement: Placement,
    name: str,
    *,
    times_per: str = "rank",
    pad: bool = False,
) -> Floats:
    """A number or a list as one value per stage, shape (stages,).

    A list is per stage as it stands. A number is what all the chunks of a rank take together (``times_per="rank"``), of
    which each stage on that rank takes an equal share, or what each stage takes (``times_per="stage"``).

    Raises
    ------
    CostError
        For a list of the wrong length; ``pad=True`` repeats its last value, or cuts it, instead.
    """
    stages = placement.stages
    if isinstance(value, tuple):
        if len(value) != stages and not (pad and value):
            raise CostError(
                f"{name}: {len(value)} values for {stages} stages; give one number, {stages} values, or --pad-times"
            )
        padded = (*value, *(value[-1:] * (stages - len(value))))[:stages]
        return np.array(padded, np.float64)
    if times_per == "stage":
        return np.full(stages, float(value))
    shares: Floats = float(value) / placement.chunks_on[placement.table[0]]
    return shares
