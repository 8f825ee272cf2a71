"""The shape and the costs as a user gives them: the same names on the command line, in a config file and in Python."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from pipeplan.costs.table import Costs, Memory, Transfer, per_stage
from pipeplan.errors import CostError, ShapeError
from pipeplan.model import Floats, Placement
from pipeplan.model.quantities import require_range

Times = float | tuple[float, ...]
"""One number, or one per stage."""

TimesPer = Literal["rank", "stage"]
Communication = Literal["edge", "blocking", "contended"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Shape and costs. None stands for what nobody said.

    Attributes
    ----------
    ranks, microbatches, chunks, stages
        p, m, v and S; ``stages`` alone sets the ranks. Defaults: 4 ranks, 8 microbatches, the strategy's chunks.
    forward_times, backward_times, backward_input_times, backward_weight_times, overlap_times
        One number, or one per stage. Defaults: forward 1; backward 2; the split halves 1 each.
    times_per
        Whether one number is for all the chunks of a rank together, or for each stage.
    p2p_time, p2p_bytes, p2p_bandwidth
        A transfer between different ranks takes ``p2p_time + p2p_bytes / p2p_bandwidth``.
    communication
        ``edge``: transfers delay what waits for them; ``blocking``: they occupy both ranks, which meet;
        ``contended``: a link carries one at a time.
    activation_bytes, weight_activation_bytes, static_bytes
        What one microbatch holds, the part of it that only W frees, and parameters with gradients and optimizer state:
        one number for all the chunks of a rank together, or one per stage.
    memory_limit
        The cap of every rank, or one per rank: bytes as a number or as text (``12GiB``), or activations (``8act``).
    group_size, slices, variant
        Of interleaved schedules, of sliced ones, and of strategies with several published rules.
    pad_times
        Repeat the last value of a list that is too short, cut one that is too long.
    time_unit
        For axes and tables, such as ``us``.
    """

    ranks: int | None = None
    microbatches: int | None = None
    chunks: int | None = None
    stages: int | None = None
    forward_times: Times | None = None
    backward_times: Times | None = None
    backward_input_times: Times | None = None
    backward_weight_times: Times | None = None
    overlap_times: Times | None = None
    times_per: TimesPer = "rank"
    p2p_time: float = 0.0
    p2p_bytes: float = 0.0
    p2p_bandwidth: float | None = None
    communication: Communication = "edge"
    activation_bytes: Times | None = None
    weight_activation_bytes: Times | None = None
    static_bytes: Times | None = None
    memory_limit: float | str | tuple[float | str, ...] | None = None
    group_size: int | None = None
    slices: int | None = None
    variant: str | None = None
    pad_times: bool = False
    time_unit: str = ""

    def costs(self, placement: Placement) -> Costs:
        """The costs on the stages of a placement.

        Raises
        ------
        CostError
            For a list of the wrong length (see ``pad_times``), a value that cannot be, bytes without their whole.
        """
        input_times, weight_times, full = self._backward(placement)
        forward = self._stages(self.forward_times, 1.0, placement, "forward times")
        overlap = self._optional(self.overlap_times, placement, "overlap times")
        bandwidth = math.inf if self.p2p_bandwidth is None else self.p2p_bandwidth
        return Costs(
            forward=forward,
            backward=full,
            backward_input=input_times,
            backward_weight=weight_times,
            recompute=forward,
            memory=self._memory(placement),
            overlap=overlap,
            transfer=Transfer(self.p2p_time, self.p2p_bytes, bandwidth),
            time_unit=self.time_unit,
        )

    def _backward(self, placement: Placement) -> tuple[Floats, Floats, Floats]:
        """Times of I, W and B: what is not given follows from what is."""
        full = self._optional(self.backward_times, placement, "backward times")
        inputs = self._optional(self.backward_input_times, placement, "backward input times")
        weights = self._optional(self.backward_weight_times, placement, "backward weight times")
        if full is None:
            one = self._stages(None, 1.0, placement, "")
            inputs = one if inputs is None else inputs
            weights = one if weights is None else weights
            return inputs, weights, inputs + weights
        if inputs is None and weights is None:
            return full / 2, full / 2, full
        if inputs is None and weights is not None:
            inputs = full - weights
        if weights is None and inputs is not None:
            weights = full - inputs
        assert inputs is not None
        assert weights is not None
        return inputs, weights, full

    def _memory(self, placement: Placement) -> Memory:
        share = per_stage(1.0, placement, "activations")
        static = self._bytes(self.static_bytes, placement, "static bytes")
        if self.activation_bytes is None:
            if self.weight_activation_bytes is not None:
                raise CostError("weight activation bytes are a part of the activation bytes, which are not given")
            return Memory(share, share, share * 0 if static is None else static, in_bytes=False)
        whole = self._bytes(self.activation_bytes, placement, "activation bytes")
        part = self._bytes(self.weight_activation_bytes, placement, "weight activation bytes")
        assert whole is not None
        return Memory(whole, whole if part is None else part, whole * 0 if static is None else static, in_bytes=True)

    def _bytes(self, value: Times | None, placement: Placement, name: str) -> Floats | None:
        if value is None:
            return None
        sizes = per_stage(value, placement, name, pad=self.pad_times)
        if not bool(np.all((sizes >= 0) & (sizes < np.inf))):
            raise CostError(f"{name} must be at least 0 and finite, not {value}")
        return sizes

    def _stages(self, value: Times | None, default: float, placement: Placement, name: str) -> Floats:
        given = default if value is None else value
        return per_stage(given, placement, name, times_per=self.times_per, pad=self.pad_times)

    def _optional(self, value: Times | None, placement: Placement, name: str) -> Floats | None:
        return None if value is None else self._stages(value, 0.0, placement, name)

    def limits(self, placement: Placement) -> Limits | None:
        """The memory cap of every rank, or None where there is none.

        Raises
        ------
        CostError
            For a cap that is no size, caps of the wrong number, bytes where the costs hold no bytes.
        """
        if self.memory_limit is None:
            return None
        given = self.memory_limit if isinstance(self.memory_limit, tuple) else (self.memory_limit,) * placement.ranks
        if len(given) != placement.ranks:
            raise CostError(f"memory limit: {len(given)} values for {placement.ranks} ranks")
        parsed = [parse_limit(value) for value in given]
        in_activations = {unit for _, unit in parsed} == {"act"}
        if not in_activations and {unit for _, unit in parsed} != {"byte"}:
            raise CostError("memory limit: give every rank's cap in bytes, or every rank's in activations")
        if not in_activations and self.activation_bytes is None:
            raise CostError(
                f"memory limit {given[0]} is in bytes, but no activation bytes are given; "
                "give them, or a limit in activations, such as 8act"
            )
        return Limits(np.array([value for value, _ in parsed]), in_activations)

    def pipeline_ranks(self, chunks: int) -> int:
        """The number of ranks: as given, or the stages divided by the chunks, or 4.

        Raises
        ------
        ShapeError
            If ranks, chunks and stages contradict each other.
        """
        if self.stages is None:
            return 4 if self.ranks is None else self.ranks
        if self.stages < 1:
            raise ShapeError(f"stages must be at least 1, not {self.stages}")
        ranks = self.ranks if self.ranks is not None else max(self.stages // chunks, 1)
        if ranks * chunks != self.stages:
            raise ShapeError(f"{self.stages} stages are not {ranks} ranks x {chunks} chunk(s)")
        return ranks


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """The cap of every rank, shape (ranks,): in bytes with everything static included, or in activations."""

    values: Floats
    in_activations: bool


_LIMIT = re.compile(r"\s*([0-9.eE+]+)\s*(act|activations?|[KMGT]i?B|B|)\s*")
_UNITS = {"": 1.0, "B": 1.0} | {
    f"{prefix}{binary}B": float((1024 if binary else 1000) ** power)
    for power, prefix in enumerate("KMGT", start=1)
    for binary in ("", "i")
}


def parse_limit(value: float | str) -> tuple[float, Literal["byte", "act"]]:
    """A cap as a number with its unit: ``8act`` is (8, "act"), ``12GiB`` (12 * 2**30, "byte").

    Raises
    ------
    CostError
        For text that is no size, and for a size that is not more than 0 and finite, or too large to be reckoned with.
    """
    match = _LIMIT.fullmatch(str(value))
    try:
        number, unit = float(match.group(1)), match.group(2)  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        raise CostError(f"memory limit '{value}' is no size; write bytes, 12GiB or activations, 8act") from None
    if not 0 < number < math.inf:
        raise CostError(f"memory limit must be more than 0 and finite, not {value}")
    size = number if unit.startswith("act") else number * _UNITS[unit]
    require_range(f"memory limit {value}", size)
    return (size, "act") if unit.startswith("act") else (size, "byte")


SETTING_NAMES = tuple(field.name for field in fields(Settings))
