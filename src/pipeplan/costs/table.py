"""Costs of a schedule's ops on one model and machine: times per stage, transfers and memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs.memory import Memory
from pipeplan.costs.microbatch_factors import MicrobatchFactors
from pipeplan.costs.overhead import Overhead, message_times, messages_received, messages_sent
from pipeplan.costs.segments import OPS, Segments
from pipeplan.costs.settings import Communication, SettingsTable
from pipeplan.costs.slice_attention import SliceAttention, factors_of_slices
from pipeplan.foundation.errors import CostError
from pipeplan.model import (
    BACKWARD_KINDS,
    COMPUTE_KINDS,
    HOST_KINDS,
    NOT_GIVEN,
    Bools,
    Floats,
    Kind,
    Placement,
    Schedule,
    Streams,
    among,
    require_range,
)


@dataclass(frozen=True, slots=True)
class Transfer:
    """A message between two ranks. It takes latency + bytes / bandwidth, in the unit of the times.

    Raises
    ------
    CostError
        If a value is negative, not finite, or too large.
    """

    latency: float = 0.0
    bytes: float = 0.0
    bandwidth: float = np.inf

    def __post_init__(self) -> None:
        if not (0 <= self.latency < np.inf and 0 <= self.bytes < np.inf):
            raise CostError(
                f"a transfer's latency and bytes must be at least 0 and finite, not {self.latency} and {self.bytes}",
                field="p2p_time" if not 0 <= self.latency < np.inf else "p2p_bytes",
            )
        if not self.bandwidth > 0:
            raise CostError(f"a transfer's bandwidth must be more than 0, not {self.bandwidth}", field="p2p_bandwidth")
        require_range("latency of a transfer", self.latency, field="p2p_time")
        require_range("p2p bytes", self.bytes, field="p2p_bytes")
        if np.isfinite(self.bandwidth):
            require_range("bandwidth", self.bandwidth, field="p2p_bandwidth")
            require_range("p2p bytes / bandwidth", self.bytes / self.bandwidth, field="p2p_bandwidth")

    def time(self, slices: int = 1) -> float:
        """Return the time of one microbatch's message, or of the message of one of its ``slices``."""
        return self.latency + self.bytes / slices / self.bandwidth


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Times per stage, each array of shape (stages,) in one unit of time for one whole microbatch.

    These are effective times: the simulator, the bounds, the search and files use no others. Everything that changes
    the time of an op is already applied (:func:`pipeplan.costs.from_settings.costs_of`).

    Attributes
    ----------
    forward, backward, backward_input, backward_weight, recompute
        Times of F, B, I, W and R.
    overlap
        Time of a forward and a backward that overlap, for each stage of the forward, or of shape (stages, stages) for the
        forward's stage and the backward's. None: the segments determine it, or it is the sum of the two.
    transfer
        Message between different ranks.
    overhead
        Overhead of ranks outside of ops.
    memory
        Memory of the stages.
    time_unit
        Unit for axes and tables; may be empty.
    name
        Name for pictures; may be empty.
    offload
        Time of a copy of an offloaded activation between a rank and its host, in either direction; 0 or more. None if
        it is unknown; then schedules with offloads are errors.
    unshard, reduce
        Times of the collectives of a stage's data-parallel group, which gather its parameters (UNSHARD) and reduce its
        gradients (REDUCE_GRAD); 0 or more. They are equal for all microbatches. None: they take no time.
    communication
        Model of transfers on the machine. Files of costs store it; simulations take it as a separate argument.
    streams
        Communication streams of each rank, if transfers run on streams.
    factors
        Factors of each microbatch on times and messages, those on memory being part of ``memory``; None if microbatches are
        alike.
    slice_attention
        Shares of attention, which make later slices of a sequence longer; None if slices take equally long.
    segments
        Computations and communications of which the ops consist, which determine the times of overlapped pairs; or None.
    settings
        Settings that the costs were made from, of which files of costs store those of the schedule and its limit; None if
        they come from elsewhere.

    Raises
    ------
    CostError
        If a time is not positive and finite, or too large or too small; arrays differ in length; or an overlap is
        shorter than its longer half.
    """

    forward: Floats
    backward: Floats
    backward_input: Floats
    backward_weight: Floats
    recompute: Floats
    memory: Memory
    overlap: Floats | None = None
    transfer: Transfer = field(default_factory=Transfer)
    overhead: Overhead = field(default_factory=Overhead)
    time_unit: str = ""
    name: str = ""
    offload: Floats | None = None
    unshard: Floats | None = None
    reduce: Floats | None = None
    communication: Communication = "edge"
    streams: Streams = "rank"
    factors: MicrobatchFactors | None = None
    slice_attention: SliceAttention | None = None
    segments: Segments | None = None
    settings: SettingsTable | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        computing = "forward", "backward", "backward_input", "backward_weight", "recompute"
        for name in (*computing, *_BESIDE):
            times = getattr(self, name)
            if times is not None:
                self._check_times(name.replace("_", " "), times)
        if self.overlap is not None:
            self._check_overlap(self.overlap)

    def _check_overlap(self, overlap: Floats) -> None:
        for row in [overlap] if overlap.ndim == 1 else pair_table(overlap, self.stages):
            self._check_times("overlap", row)
        longer = np.maximum(_of_forward(self.forward, overlap), self.backward)
        short = np.argwhere(overlap < longer)
        if len(short):
            place = tuple(short[0])
            stages = f"stage {place[0]}"
            if len(place) > 1:
                stages = f"the forward of stage {place[0]} and the backward of stage {place[1]}"
            raise CostError(
                f"overlap time {overlap[place]:g} of {stages} is below its longer half, {longer[place]:g}",
                field="overlap_times",
            )

    def _check_times(self, name: str, times: Floats) -> None:
        field = f"{name.replace(' ', '_')}_times"
        if len(times) != len(self.forward):
            raise CostError(f"{name} times: {len(times)} values for {len(self.forward)} stages", field=field)
        low = times >= 0 if name in _BESIDE else times > 0
        wrong = np.flatnonzero(~(low & (times < np.inf)))
        if wrong.size:
            stage = int(wrong[0])
            least = "at least" if name in _BESIDE else "more than"
            raise CostError(
                f"{name} time of stage {stage} must be {least} 0 and finite, not {times[stage]:g}", field=field
            )
        require_range(f"{name} time", times, divides=True, field=field)

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.forward)

    def scaled(self, factor: float | Floats) -> Costs:
        """Return the same costs with the times of all ops multiplied by a factor: one number, or one per stage.

        Transfers, host copies, collectives and overheads do not change.
        """
        return self.retimed(**{name: getattr(self, name) * factor for name in _FIELDS.values()})

    def retimed(self, **times: Floats) -> Costs:
        """Return the same costs with other times of F, B, I, W or R, by their attributes, arrays of shape (stages,).

        Overlapped pairs keep the share of their two ops that they save, and are at least as long as the longer one. Segments
        keep their shares of their op.
        """
        old = {name: getattr(self, name) for name in _FIELDS.values()}
        new = old | times
        overlap, segments = self.overlap, self.segments
        if overlap is not None:
            old_forward, new_forward = (_of_forward(own["forward"], overlap) for own in (old, new))
            overlap = overlap * (new_forward + new["backward"]) / (old_forward + old["backward"])
            overlap = np.maximum(overlap, np.maximum(new_forward, new["backward"]))
        if segments is not None:
            lost = np.stack([self._overhead_in(kind) for kind in (Kind.F, Kind.I, Kind.W)])
            before, after = (np.stack([own[op] for op in OPS]) for own in (old, new))
            segments = segments.scaled(((after - lost) / (before - lost)).T)
        return replace(self, **times, overlap=overlap, segments=segments)  # type: ignore[arg-type]

    def occupied(self, placement: Placement, slices: int = 1) -> Costs:
        """Return costs of the same stages in which ops include the overhead between ops.

        An op of these costs takes all the time for which it occupies its rank: its gap, the messages that it receives,
        itself, and the messages that it sends. An overlapped pair has one gap, and the messages of both ops (see
        :meth:`pair_times`).

        Parameters
        ----------
        placement
            Placement of the stages: stages on the same rank exchange no messages.
        slices
            Number of sequence slices, each an op with its own gap and messages.
        """
        if not self.overhead.between_ops:
            return self
        messages = message_times(self.overhead, placement) * slices
        lost = self.overhead.op_gap * slices + messages
        return _OccupiedCosts(
            **{field.name: getattr(self, field.name) for field in fields(self)}
            | {
                "forward": self.forward + lost[Kind.F],
                "backward": self.backward + lost[Kind.B],
                "backward_input": self.backward_input + lost[Kind.I],
                "backward_weight": self.backward_weight + lost[Kind.W],
                "recompute": self.recompute + lost[Kind.R],
                "overhead": Overhead(step_time=self.overhead.step_time),
                "overlap": None if self.overlap is None else (self.overlap.T + lost[Kind.F]).T,
                "of_overhead": lost,
                "of_messages": messages[Kind.F],
            }
        )

    @property
    def messages(self) -> Floats:
        """Time of messages included in F, B and I of a stage, shape (stages,): 0, except after :meth:`occupied`."""
        return np.zeros(self.stages)

    def _overhead_in(self, kind: Kind) -> Floats:
        """Return the overhead included in an op of a kind, shape (stages,): 0, except after :meth:`occupied`."""
        return np.zeros(self.stages)

    def times(self, kind: Kind) -> Floats:
        """Return the time of an op that computes, shape (stages, microbatches); (stages, 1) if microbatches are alike."""
        times: Floats = getattr(self, _FIELDS[kind])[:, None]
        if self.factors is None:
            return times
        overhead = self._overhead_in(kind)[:, None]
        varied: Floats = (times - overhead) * self._factors_on(kind) + overhead
        return varied

    def _factors_on(self, kind: Kind) -> Floats:
        """Return the factors on the times of a kind, shape (stages, microbatches), if microbatches differ."""
        factors = self.factors
        assert factors is not None
        if kind in HOST_KINDS:
            return factors.size
        if kind != Kind.B:
            return {Kind.I: factors.backward_input, Kind.W: factors.backward_weight}.get(kind, factors.forward)
        (inputs, weights), (mean_inputs, mean_weights) = self._halves(), self._mean_halves()
        both: Floats = (inputs + weights) / (mean_inputs + mean_weights)
        return both

    def transfer_times(self, slices: int = 1) -> Floats:
        """Return the time of the message between each stage and the next one, shape (stages, microbatches).

        Its second dimension is 1 if microbatches are alike. That of the last stage is not used.
        """
        size = np.ones((self.stages, 1)) if self.factors is None else self.factors.size
        times: Floats = self.transfer.latency + self.transfer.bytes * size / slices / self.transfer.bandwidth
        return times

    def unsplit(self) -> Costs:
        """Return costs in which all of a full backward, and of what it frees, belongs to I; slices take equally long."""
        factors = self.factors
        if factors is not None:
            factors = replace(factors, **dict.fromkeys(("backward_input", "backward_weight"), self._factors_on(Kind.B)))
        memory = replace(self.memory, freed_by_weight=np.zeros(self.stages))
        segments = None if self.segments is None else replace(self.segments, whole=True)
        return replace(
            self, backward_input=self.backward, memory=memory, factors=factors, slice_attention=None, segments=segments
        )

    def _mean_halves(self) -> tuple[Floats, Floats]:
        """Return the times of I and W of factor 1, without overhead: two arrays of shape (stages, 1)."""
        inputs = self.backward_input - self._overhead_in(Kind.I)
        weights = self.backward_weight - self._overhead_in(Kind.W)
        return inputs[:, None], weights[:, None]

    def _halves(self) -> tuple[Floats, Floats]:
        """Return the times of I and W without overhead: two arrays of shape (stages, microbatches), or (stages, 1)."""
        inputs, weights = self._mean_halves()
        if self.factors is None:
            return inputs, weights
        return inputs * self.factors.backward_input, weights * self.factors.backward_weight

    def unequal(self, slices: int) -> bool:
        """Return True if this many slices of a sequence take different times."""
        return slices > 1 and self.slice_attention is not None

    def first_slice(self, kind: Kind, slices: int) -> Floats:
        """Return the factor of the first slice, the shortest one, on its equal share of a kind's time, shape (stages,).

        If it depends on the microbatch, it is the smallest.
        """
        if self.slice_attention is None:
            return np.ones(self.stages)
        share = self.slice_attention.in_kind(kind, *self._halves()).max(axis=1)
        return factors_of_slices(share, np.zeros(self.stages, np.int64), slices)

    def of_microbatch(self, microbatch: int) -> Costs:
        """Return the costs of a single microbatch."""
        if self.factors is None:
            return self
        size = self.memory.factors[:, [microbatch]]
        return replace(self, factors=self.factors.taken([microbatch]), memory=replace(self.memory, factors=size))

    def delays(self, schedule: Schedule) -> Floats:
        """Return the time of the message with each op's result, shape (ops,), whether it goes to another rank or not.

        The result of a backward, like the gradient that it computes, has the size of the stage before.
        """
        if self.factors is None:
            return np.full(len(schedule), self.transfer.time(schedule.slices))
        self.require_microbatches(schedule.microbatches)
        columns = schedule.columns
        stage = np.maximum(columns.stage - among(columns.kind, (*BACKWARD_KINDS, Kind.SEND_B)), 0)
        times: Floats = self.transfer_times(schedule.slices)[stage, np.maximum(columns.microbatch, 0)]
        return times

    def uniform(self, reduce: Callable[..., Floats] = np.mean) -> Costs:
        """Return costs of equal microbatches: of the mean one, or the one that ``reduce`` makes of all of them.

        ``reduce`` takes an array and an ``axis`` to reduce.
        """
        if self.factors is None:
            return self
        computed = {name: reduce(self.times(kind), axis=1) for kind, name in _FIELDS.items()}
        size = reduce(self.factors.size, axis=1)
        return replace(
            self.retimed(**computed),
            factors=None,
            memory=self.memory.uniform(reduce),
            offload=None if self.offload is None else self.offload * size,
            transfer=replace(self.transfer, bytes=float(self.transfer.bytes * reduce(size, axis=0))),
        )

    def meeting(self) -> Costs:
        """Return costs of the same stages for blocking transfers, in which the message time is part of the transfer.

        Both ends of the message pay it at the same time, not one after the other.
        """
        latency = self.transfer.latency + self.overhead.message_time
        return replace(
            self,
            transfer=replace(self.transfer, latency=latency),
            overhead=replace(self.overhead, message_time=0.0),
        )

    def lost(self, schedule: Schedule) -> tuple[Floats, Floats]:
        """Return the overhead of each op before its start and after its end; two arrays of shape (ops,).

        Before it are its gap and the messages that it receives, after it the messages that it sends. Both ops of an
        overlapped pair have the same overhead. Communication ops have none.
        """
        if not self.overhead.between_ops:
            return np.zeros(len(schedule)), np.zeros(len(schedule))
        columns, overhead, placement = schedule.columns, self.overhead, schedule.placement
        second = np.flatnonzero(schedule.joined)
        first = second - 1
        gap = np.where(among(columns.kind, COMPUTE_KINDS), overhead.op_gap, 0.0)
        if self.has_pair_times:
            gap[second] = 0.0
        where = columns.kind, columns.stage
        before: Floats = gap + overhead.message_time * messages_received(placement)[where]
        behind: Floats = overhead.message_time * messages_sent(placement)[where]
        for part in (before, behind):
            part[first] = part[second] = part[first] + part[second]
        return before, behind

    def durations(self, schedule: Schedule) -> Floats:
        """Return the time of each op, shape (ops,); 0 for communication ops, RESHARD and waits.

        Both ops of an overlapped pair have the time of the pair. A slice takes its share of the microbatch's time, which is
        the same for all slices unless ``slice_attention`` makes them differ.

        Raises
        ------
        CostError
            If schedule and costs differ in their number of stages, or the schedule offloads and the time of a copy is
            unknown.
        """
        if schedule.stages != self.stages:
            raise CostError(f"costs have {self.stages} stages, but the schedule has {schedule.stages}")
        table = np.zeros((len(Kind), self.stages))
        table[Kind.F], table[Kind.B] = self.forward, self.backward
        table[Kind.I], table[Kind.W] = self.backward_input, self.backward_weight
        table[Kind.R] = self.recompute
        if not schedule.kinds.isdisjoint(HOST_KINDS):
            table[list(HOST_KINDS)] = self.require_offload(schedule.name)
        for kind, whole in ((Kind.UNSHARD, self.unshard), (Kind.REDUCE_GRAD, self.reduce)):
            if whole is not None:
                table[kind] = whole * schedule.slices
        times: Floats = table.ravel()[schedule.cost_index]
        if self._vary(schedule):
            times *= self._factors_of(schedule)
        forward, backward = schedule.pairs
        if forward.size:
            times[forward] = times[backward] = self._pair_times(schedule, times)
        return times / schedule.slices if schedule.slices > 1 else times

    def times_collectives(self, schedule: Schedule) -> bool:
        """Return True if any UNSHARD or REDUCE_GRAD of a schedule takes time."""
        times = {Kind.UNSHARD: self.unshard, Kind.REDUCE_GRAD: self.reduce}
        return any(whole is not None and whole.any() and schedule.has(kind) for kind, whole in times.items())

    def _vary(self, schedule: Schedule) -> bool:
        """Return True if microbatches or slices of a schedule differ."""
        return self.factors is not None or self.unequal(schedule.slices)

    def _factors_of(self, schedule: Schedule) -> Floats:
        """Return the factor on the time of each op, shape (ops,); 1 for communication and stage-wide ops."""
        self.require_microbatches(schedule.microbatches)
        columns, factors = schedule.columns, np.ones(len(schedule))
        for kind in schedule.kinds.intersection((*COMPUTE_KINDS, *HOST_KINDS)):
            ops = schedule.where(kind)
            stage = columns.stage[ops]
            if self.factors is not None:
                factors[ops] = self._factors_on(kind)[stage, columns.microbatch[ops]]
            if self.slice_attention is not None and schedule.slices > 1 and kind not in HOST_KINDS:
                shares = self.slice_attention.in_kind(kind, *self._halves())
                share = shares[stage, np.minimum(columns.microbatch[ops], shares.shape[1] - 1)]
                factors[ops] *= factors_of_slices(share, columns.slice[ops], schedule.slices)
        return factors

    def require_microbatches(self, microbatches: int) -> None:
        """Raise CostError if the costs have factors of another number of microbatches."""
        if self.factors is not None and self.factors.microbatches != microbatches:
            raise CostError(
                f"the costs have factors of {self.factors.microbatches} microbatches, but the schedule has {microbatches}",
                field="microbatches",
            )

    def require_offload(self, name: str = "") -> Floats:
        """Return the time of a copy to the host, shape (stages,).

        Parameters
        ----------
        name
            Name of the schedule, for the error.

        Raises
        ------
        CostError
            If the time is unknown.
        """
        if self.offload is None:
            raise CostError(
                f"{name or 'the schedule'} offloads activations, but the time of a copy is unknown: set an offload "
                "bandwidth and activation bytes, or offload times",
                field="offload_bandwidth",
            )
        return self.offload

    def _pair_times(self, schedule: Schedule, times: Floats) -> Floats:
        stage, (forward, backward) = schedule.columns.stage, schedule.pairs
        if not self.has_pair_times:
            pairs: Floats = times[forward] + times[backward]
            return pairs
        inputs = schedule.columns.kind[backward] == Kind.I
        if not self._vary(schedule):
            return self.pair_times(stage[forward], stage[backward], times[backward], inputs)
        # A pair of microbatches or slices that differ saves as much as the smaller one would with another of its size.
        factor = self._factors_of(schedule)
        alone = times[backward] / factor[backward]
        together = self.pair_times(stage[forward], stage[backward], alone, inputs)
        saved = times[forward] / factor[forward] + alone - together
        varied: Floats = times[forward] + times[backward] - saved * np.minimum(factor[forward], factor[backward])
        return varied

    @property
    def has_pair_times(self) -> bool:
        """True if a pair of a forward and a backward may take less time than both in sequence."""
        return self.overlap is not None or self.segments is not None

    def pair_times(
        self, forward: NDArray[np.integer], backward: NDArray[np.integer], alone: Floats, inputs: Bools | bool = False
    ) -> Floats:
        """Return the times of overlapped pairs: of both stages, by their overlap time or segments.

        A pair takes at least as long as its backward alone. The arrays have one shape or are broadcast against each other.

        Parameters
        ----------
        forward, backward
            Stage of each pair's forward and of its backward.
        alone
            Time of each backward alone.
        inputs
            True where the backward is an I. Overlap times do not distinguish it from a full one, segments do.

        Raises
        ------
        ValueError
            If these costs have neither overlap times nor segments; a pair then takes the sum of its two ops.
        """
        if self.segments is not None:
            pairs = self.segments.together(forward, backward, inputs).time + self._overhead_in(Kind.F)[forward]
        elif self.overlap is None:
            raise ValueError("the costs have no overlap times and no segments")
        else:
            pairs = self.overlap[forward] if self.overlap.ndim == 1 else self.overlap[forward, backward]
        messages = self.messages
        together: Floats = np.maximum(pairs + messages[backward], alone + messages[forward])
        return together


_BESIDE = ("offload", "unshard", "reduce")
"""Fields of :class:`Costs` with times of ops beside the computation, which may be 0."""

_FIELDS = {
    Kind.F: "forward",
    Kind.B: "backward",
    Kind.I: "backward_input",
    Kind.W: "backward_weight",
    Kind.R: "recompute",
}
"""Fields of :class:`Costs` with the times of each kind that computes."""


@dataclass(frozen=True, slots=True, eq=False)
class _OccupiedCosts(Costs):
    """Costs that include overhead, ``of_overhead`` of shape (kinds, stages).

    ``of_messages`` is the part of it that messages take from F, B and I, shape (stages,).
    """

    of_overhead: Floats = field(default_factory=lambda: NOT_GIVEN)
    of_messages: Floats = field(default_factory=lambda: NOT_GIVEN)

    def _check_overlap(self, overlap: Floats) -> None:
        """Accept overlap times that include the overhead of the forward, but not that of the backward."""

    def _overhead_in(self, kind: Kind) -> Floats:
        """Return the overhead included in an op of a kind."""
        overhead: Floats = self.of_overhead[kind]
        return overhead

    @property
    def messages(self) -> Floats:
        """Time of messages included in F, B and I of a stage. An overlapped pair has that of both its stages."""
        return self.of_messages


def _of_forward(times: Floats, overlap: Floats) -> Floats:
    """Return the times of forwards in the shape of overlap times: a column beside a table."""
    return times if overlap.ndim == 1 else times[:, None]


def pair_table(rows: Sequence[Any] | Floats, stages: int) -> Floats:
    """Return a table of the times of pairs, shape (stages, stages), from its rows; raise CostError for any other shape."""
    lengths = {len(row) if isinstance(row, tuple | list | np.ndarray) else 0 for row in rows}
    if len(rows) != stages or lengths != {stages}:
        raise CostError(
            f"overlap times: expected a table of {stages} rows with {stages} values each for {stages} stages, a row per "
            f"stage of the forward, a value per stage of the backward",
            field="overlap_times",
        )
    return np.asarray(rows, np.float64)


def per_stage(
    value: float | tuple[float, ...],
    placement: Placement,
    name: str = "",
    *,
    times_per: str = "rank",
    pad: bool = False,
) -> Floats:
    """Return a number or a list as one value per stage, shape (stages,).

    A list has one value per stage, or one per rank. A number, or the value of a rank, is the total of all chunks that the
    rank holds of one copy of the model, of which each gets an equal share (``times_per="rank"``), or the value of each of
    its stages (``times_per="stage"``). If there are as many ranks as stages, a list is per stage.
    """
    stages, ranks = placement.stages, placement.ranks
    if isinstance(value, tuple):
        if len(value) != stages and pad and value:
            value = (*value, *(value[-1:] * (stages - len(value))))[:stages]
        if len(value) == stages:
            return np.array(value, np.float64)
        if len(value) != ranks or not placement.chunks_on.all():
            raise CostError(
                f"{name.replace('_', ' ')}: {len(value)} values for {lengths_in_words(stages, ranks)}", field=name
            )
    rank_of = placement.table[0]
    values: Floats = np.broadcast_to(np.array(value, np.float64), (ranks,))[rank_of]
    return values if times_per == "stage" else values / placement.chunks_on[rank_of]


def lengths_in_words(stages: int, ranks: int) -> str:
    """Return the end of an error about a list's length: the shape, and the lengths that a list may have."""
    if stages == ranks:
        return f"{stages} stages; set one number, or {stages} values"
    return (
        f"{stages} stages on {ranks} ranks; set one number, {stages} values (one per stage) or {ranks} (one per rank)"
    )
