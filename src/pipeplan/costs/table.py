"""What a schedule's ops cost on one model and machine: times per stage, a transfer, and bytes held."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs.limits import Limits
from pipeplan.costs.overhead import Overhead, message_times, messages_received, messages_sent
from pipeplan.costs.settings import Communication
from pipeplan.errors import CostError
from pipeplan.model import (
    COMPUTE_KINDS,
    HOST_KINDS,
    NOT_GIVEN,
    Floats,
    Kind,
    MemoryRule,
    Placement,
    Schedule,
    among,
    held_throughout,
    in_activations,
    kept_and_moved,
    require_range,
    tolerances,
)


@dataclass(frozen=True, slots=True)
class Transfer:
    """A message between two different ranks: latency + bytes / bandwidth, in the unit of the times.

    Raises
    ------
    CostError
        For a part that is negative, not finite, or too large to compute with.
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
    recompute_keeps
        The part of it that a forward keeps which is recomputed: what the recomputation starts from. Nothing where it is not
        given.
    offloaded
        The part of it that is copied to the host where a microbatch is offloaded; the rest stays. All where it is not given.

    Raises
    ------
    CostError
        For a size that is too large or too small to compute with, and for a part that is more than its whole.
    """

    activation: Floats
    freed_by_weight: Floats
    static: Floats
    in_bytes: bool
    recompute_keeps: Floats = field(default_factory=lambda: NOT_GIVEN)
    offloaded: Floats = field(default_factory=lambda: NOT_GIVEN)

    def __post_init__(self) -> None:
        kept, moved = kept_and_moved(self.activation, self.recompute_keeps, self.offloaded)
        object.__setattr__(self, "recompute_keeps", kept)
        object.__setattr__(self, "offloaded", moved)
        self._require_part("a recomputed forward keeps", kept, field="recompute_bytes")
        self._require_part("an offload moves", moved, field="offload_bytes")
        require_range("activation bytes", self.activation, divides=True, field="activation_bytes")
        require_range("weight activation bytes", self.freed_by_weight, field="weight_activation_bytes")
        require_range("static bytes", self.static, field="static_bytes")

    def _require_part(self, what: str, part: Floats, *, field: str) -> None:
        """Check that a part of the activation is one, on every stage. Raises CostError."""
        if len(part) != len(self.activation):
            raise CostError(f"what {what}: {len(part)} values for {len(self.activation)} stages", field=field)
        wrong = np.flatnonzero(~((part >= 0) & (part <= self.activation * (1 + tolerances.ROUNDING))))
        if wrong.size:
            stage = int(wrong[0])
            unit = "bytes" if self.in_bytes else "activations"
            raise CostError(
                f"what {what} on stage {stage} is from 0 to its activation, {self.activation[stage]:g} {unit}, "
                f"not {part[stage]:g}",
                field=field,
            )

    def rule(self, placement: Placement, limits: Limits | None) -> MemoryRule:
        """What stages hold and what ranks may: in bytes under limits in bytes, else in activations.

        Raises
        ------
        CostError
            For limits that are not one a rank, or in bytes where no activation bytes are given.
        """
        if limits is not None and len(limits.values) != placement.ranks:
            raise CostError(
                f"memory limit: {len(limits.values)} values for {placement.ranks} ranks", field="memory_limit"
            )
        if limits is None or limits.in_activations:
            limit = np.full(placement.ranks, np.inf) if limits is None else limits.values
            held, freed, kept, moved = in_activations(
                placement, self.activation, self.freed_by_weight, self.recompute_keeps, self.offloaded
            )
            return MemoryRule(held, freed, limit, recompute_keeps=kept, offloaded=moved)
        if not self.in_bytes:
            raise CostError(
                "a memory limit in bytes needs activation bytes; give them, or a limit in activations",
                field="memory_limit",
            )
        limit = limits.values - held_throughout(placement, self.static)
        return MemoryRule(self.activation, self.freed_by_weight, limit, "bytes", self.recompute_keeps, self.offloaded)


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Times per stage, each array of shape (stages,) in one unit of time for one whole microbatch.

    These are the effective times: the simulator, the bounds, the search and files read them and nothing else. Whatever
    changes how long an op takes has changed them before (:func:`pipeplan.costs.from_settings.costs_of`).

    Attributes
    ----------
    forward, backward, backward_input, backward_weight, recompute
        How long F, B, I, W and R take.
    overlap
        How long a forward of the stage takes together with the backward it overlaps with; None: the sum of the two.
    transfer
        A message between different ranks.
    overhead
        What ranks lose besides.
    memory
        What is held.
    time_unit
        For axes and tables; empty where nobody said.
    name
        What pictures call them; may be empty.
    offload
        How long a copy of what OFFLOAD frees takes between a rank and its host, in either direction; 0 or more. None where
        nobody said: then nothing can be offloaded.
    communication
        How transfers behave on the machine. A file of costs keeps it; a simulation takes it as an argument of its own.

    Raises
    ------
    CostError
        For a time that is not more than 0 and finite, or too large or too small to compute with; arrays of different
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
    overhead: Overhead = field(default_factory=Overhead)
    time_unit: str = ""
    name: str = ""
    offload: Floats | None = None
    communication: Communication = "edge"

    def __post_init__(self) -> None:
        for name in ("forward", "backward", "backward_input", "backward_weight", "recompute", "overlap", "offload"):
            times = getattr(self, name)
            if times is not None:
                self._check_times(name.replace("_", " "), times)
        if self.overlap is not None:
            longer = np.maximum(self.forward, self.backward)
            if (short := np.flatnonzero(self.overlap < longer)).size:
                stage = int(short[0])
                raise CostError(
                    f"overlap time {self.overlap[stage]:g} of stage {stage} is below its longer half, {longer[stage]:g}",
                    field="overlap_times",
                )

    def _check_times(self, name: str, times: Floats) -> None:
        field = f"{name.replace(' ', '_')}_times"
        if len(times) != len(self.forward):
            raise CostError(f"{name} times: {len(times)} values for {len(self.forward)} stages", field=field)
        low = times >= 0 if name == "offload" else times > 0
        wrong = np.flatnonzero(~(low & (times < np.inf)))
        if wrong.size:
            stage = int(wrong[0])
            least = "at least" if name == "offload" else "more than"
            raise CostError(
                f"{name} time of stage {stage} must be {least} 0 and finite, not {times[stage]:g}", field=field
            )
        require_range(f"{name} time", times, divides=True, field=field)

    @property
    def stages(self) -> int:
        """How many stages the costs are for."""
        return len(self.forward)

    def scaled(self, factor: float | Floats) -> Costs:
        """Return the same costs where every op takes ``factor`` times as long: one number, or one per stage.

        Transfers, copies to the host and overheads stay as they are.
        """
        return replace(
            self,
            forward=self.forward * factor,
            backward=self.backward * factor,
            backward_input=self.backward_input * factor,
            backward_weight=self.backward_weight * factor,
            recompute=self.recompute * factor,
            overlap=None if self.overlap is None else self.overlap * factor,
        )

    def occupied(self, placement: Placement, slices: int = 1) -> Costs:
        """The costs of the same stages with what is lost between ops as a part of the ops, and nothing lost besides.

        So an op of these costs takes what it occupies its rank for: its gap, the messages that it receives, itself, the
        messages that it sends. An overlapped pair has one gap, and the messages of both its ops (see :meth:`pair_times`).

        Parameters
        ----------
        placement
            Which stages are on one rank: between these nothing is sent.
        slices
            Of a sequence: each is an op of its own, with a gap and messages of its own.
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
                "overlap": None if self.overlap is None else self.overlap + lost[Kind.F],
                "overhead": Overhead(step_time=self.overhead.step_time),
                "of_messages": messages[Kind.F],
            }
        )

    @property
    def messages(self) -> Floats:
        """The part of a stage's F, B and I that messages take, shape (stages,): none, but see :meth:`occupied`."""
        return np.zeros(self.stages)

    def meeting(self) -> Costs:
        """The costs of the same stages where both ends of a message meet: what it takes from them is time of its transfer.

        It passes once, at both ends together, not behind the one's op and then before the other's.
        """
        latency = self.transfer.latency + self.overhead.message_time
        return replace(
            self,
            transfer=replace(self.transfer, latency=latency),
            overhead=replace(self.overhead, message_time=0.0),
        )

    def lost(self, schedule: Schedule) -> tuple[Floats, Floats]:
        """What each op takes from its rank before it starts, and behind its end; two arrays of shape (ops,).

        Before it are its gap and what it receives, behind it what it sends; both are the same for the two of an overlapped
        pair. Communication loses nothing.
        """
        if not self.overhead.between_ops:
            return np.zeros(len(schedule)), np.zeros(len(schedule))
        columns, lost, placement = schedule.columns, self.overhead, schedule.placement
        second = np.flatnonzero(schedule.joined)
        first = second - 1
        gap = np.where(among(columns.kind, COMPUTE_KINDS), lost.op_gap, 0.0)
        if self.overlap is not None:
            gap[second] = 0.0
        where = columns.kind, columns.stage
        before: Floats = gap + lost.message_time * messages_received(placement)[where]
        behind: Floats = lost.message_time * messages_sent(placement)[where]
        for part in (before, behind):
            part[first] = part[second] = part[first] + part[second]
        return before, behind

    def durations(self, schedule: Schedule) -> Floats:
        """How long each op takes, shape (ops,); communication and stage-wide ops take 0, copies to the host their time.

        Overlapped ops both get their pair's time. A slice takes its share of the microbatch's.

        Raises
        ------
        CostError
            If the schedule has another number of stages than the costs, or offloads and nobody said how long that takes.
        """
        if schedule.stages != self.stages:
            raise CostError(f"costs for {self.stages} stages do not fit a schedule of {schedule.stages} stages")
        table = np.zeros((len(Kind), self.stages))
        table[Kind.F], table[Kind.B] = self.forward, self.backward
        table[Kind.I], table[Kind.W] = self.backward_input, self.backward_weight
        table[Kind.R] = self.recompute
        if not schedule.kinds.isdisjoint(HOST_KINDS):
            table[list(HOST_KINDS)] = self.require_offload(schedule.name)
        times: Floats = table.ravel()[schedule.cost_index]
        second = np.flatnonzero(schedule.joined)
        if second.size:
            times[second] = times[second - 1] = self._pair_times(schedule, second, times)
        return times / schedule.slices if schedule.slices > 1 else times

    def require_offload(self, name: str = "") -> Floats:
        """How long a copy to the host takes, which somebody must have said: shape (stages,).

        Parameters
        ----------
        name
            Of what offloads, for the error.

        Raises
        ------
        CostError
            Where nobody did.
        """
        if self.offload is None:
            raise CostError(
                f"{name or 'the schedule'} offloads activations, and nothing says how long a copy takes: give an "
                "offload bandwidth and activation bytes, or offload times",
                field="offload_bandwidth",
            )
        return self.offload

    def _pair_times(self, schedule: Schedule, second: NDArray[np.intp], times: Floats) -> Floats:
        """The time of each overlapped pair, given the position of its second op."""
        first = second - 1
        if self.overlap is None:
            pairs: Floats = times[first] + times[second]
            return pairs
        stage, turned = schedule.columns.stage, schedule.columns.kind[first] != Kind.F
        forward, backward = np.where(turned, second, first), np.where(turned, first, second)
        return self.pair_times(stage[forward], stage[backward], times[backward])

    def pair_times(self, forward: NDArray[np.integer], backward: NDArray[np.integer], alone: Floats) -> Floats:
        """Return how long forwards of some stages take together with the backwards of others that they overlap with.

        A pair takes its forward's overlap time, and no less than its backward takes alone. The three arrays have one shape,
        or are broadcast against each other.

        Parameters
        ----------
        forward, backward
            The stage of each pair's forward, and of its backward.
        alone
            How long each backward takes alone.

        Raises
        ------
        ValueError
            If these costs have no overlap times: a pair then takes the sum of its two ops.
        """
        if self.overlap is None:
            raise ValueError("the costs have no overlap times")
        messages = self.messages
        together: Floats = np.maximum(self.overlap[forward] + messages[backward], alone + messages[forward])
        return together


@dataclass(frozen=True, slots=True, eq=False)
class _OccupiedCosts(Costs):
    """Costs whose times are what ops occupy their ranks for; of that, messages take ``of_messages``, shape (stages,)."""

    of_messages: Floats = field(default_factory=lambda: NOT_GIVEN)

    @property
    def messages(self) -> Floats:
        """The part of a stage's F, B and I that messages take. An overlapped pair has that of both its stages."""
        return self.of_messages


def per_stage(
    value: float | tuple[float, ...],
    placement: Placement,
    name: str = "",
    *,
    times_per: str = "rank",
    pad: bool = False,
) -> Floats:
    """A number or a list as one value per stage, shape (stages,).

    A list is per stage as it stands. A number is what all the chunks of a rank take together (``times_per="rank"``), of
    which each stage on that rank takes an equal share, or what each stage takes (``times_per="stage"``).

    Parameters
    ----------
    name
        The setting that the value is of, for the error.

    Raises
    ------
    CostError
        For a list of the wrong length; ``pad=True`` repeats its last value, or cuts it, instead.
    """
    stages = placement.stages
    if isinstance(value, tuple):
        if len(value) != stages and not (pad and value):
            words = name.replace("_", " ")
            raise CostError(
                f"{words}: {len(value)} values for {stages} stages; give one number, {stages} values, or pad_times",
                field=name,
            )
        padded = (*value, *(value[-1:] * (stages - len(value))))[:stages]
        return np.array(padded, np.float64)
    if times_per == "stage":
        return np.full(stages, float(value))
    shares: Floats = float(value) / placement.chunks_on[placement.table[0]]
    return shares
