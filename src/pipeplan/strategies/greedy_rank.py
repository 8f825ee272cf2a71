"""State of each rank in a greedy heuristic, and placing one op after the other.

Both heuristics of the zero-bubble authors work this way. A rank has a clock, a memory level, a bubble, and a queue of
pending weight backwards. An op starts when its rank is free and what it waits for has arrived; pending Ws fill the wait
and make room in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeplan.costs import Costs, Limits
from pipeplan.foundation.errors import InfeasibleError
from pipeplan.foundation.readable import sizes_text
from pipeplan.model import Columns, Kind, Placement, Schedule, ops, source_of, tolerances


@dataclass(frozen=True, slots=True)
class RankCosts:
    """Costs of one chunk's ops on a rank whose chunks are all equal.

    Attributes
    ----------
    forward, backward_input, backward_weight
        Times of F, I and W.
    held, freed_by_weight
        Memory that F allocates and that W frees; I frees (or, if negative, allocates) the rest. In the unit of
        ``limit``.
    limit
        Memory limit of the rank without its static memory.
    unit
        Unit of memory: bytes or activations.
    """

    forward: float
    backward_input: float
    backward_weight: float
    held: float
    freed_by_weight: float
    limit: float
    unit: str

    @property
    def input_change(self) -> float:
        """Change of memory by an I; negative if it frees memory."""
        return self.freed_by_weight - self.held

    @property
    def forward_room(self) -> float:
        """Memory that must be free for an F: what it allocates, and what its I will add to that."""
        return max(self.held, self.freed_by_weight)

    def require_room(self, name: str, rank: int, needed: float, reason: str) -> None:
        """Raise an error if the limit is below what the heuristic ``name`` needs on this rank.

        Raises InfeasibleError with the limit and the memory that is known to be needed.
        """
        if self.limit < needed * (1 - tolerances.MEMORY):
            room = max(self.limit, 0.0)
            has, needs = sizes_text(room, needed) if self.unit == "bytes" else (f"{room:g} {self.unit}", f"{needed:g}")
            raise InfeasibleError(
                f"{name}: rank {rank} has room for {has} but needs at least {needs}: {reason}", field="memory_limit"
            )


def rank_costs(placement: Placement, costs: Costs, limits: Limits | None, chunk: int = 0) -> list[RankCosts]:
    """Return each rank's costs, taken from one of its chunks.

    Memory is in bytes if the limit is in bytes, else in activations, of which each chunk holds an equal share.

    Raises CostError if the limit is in bytes but the costs have no bytes.
    """
    rule = costs.memory.rule(placement, limits).with_gradients_reserved(placement)
    return [
        RankCosts(
            forward=float(costs.forward[stage]),
            backward_input=float(costs.backward_input[stage]),
            backward_weight=float(costs.backward_weight[stage]),
            held=float(rule.activation[stage]),
            freed_by_weight=float(rule.freed_by_weight[stage]),
            limit=float(rule.limit[rank]),
            unit=rule.unit,
        )
        for rank in range(placement.ranks)
        for stage in (placement.stages_on(rank)[chunk],)
    ]


class LargestBubble:
    """Largest bubble of the ranks that share this object, updated as it grows. Heuristics need it before every op."""

    __slots__ = ("bubble",)

    def __init__(self) -> None:
        self.bubble = 0.0


class GreedyRank:
    """One rank of a greedy heuristic, to which ops are appended; microbatches in order for each kind and chunk.

    Attributes
    ----------
    clock, memory, bubble
        End of the last op, memory held then, and idle time since the first op.
    forwards, inputs
        ``forwards[chunk][microbatch]`` is the end of that F, ``inputs`` that of an I, for the ops placed so far.
    owed
        (chunk, microbatch) of the pending Ws whose I is done, in that order.
    row
        (kind, chunk, microbatch) of all ops placed.
    """

    __slots__ = (
        "_limit",
        "_longest",
        "_rank",
        "bubble",
        "clock",
        "costs",
        "forwards",
        "inputs",
        "memory",
        "owed",
        "row",
    )

    def __init__(self, rank: int, costs: RankCosts, chunks: int, longest: LargestBubble) -> None:
        self._rank = rank
        self._longest = longest
        self._limit = costs.limit * (1 + tolerances.MEMORY)
        self.costs = costs
        self.clock = self.memory = self.bubble = 0.0
        self.forwards: list[list[float]] = [[] for _ in range(chunks)]
        self.inputs: list[list[float]] = [[] for _ in range(chunks)]
        self.owed: deque[tuple[int, int]] = deque()
        self.row: list[tuple[Kind, int, int]] = []

    @property
    def largest_bubble(self) -> float:
        """Largest bubble of all ranks so far; bubbles never shrink."""
        return self._longest.bubble

    @property
    def span(self) -> float:
        """Time from the start of the first op to the end of the last."""
        return self.clock - (self.forwards[0][0] - self.costs.forward)

    def ends(self, kind: Kind, chunk: int) -> list[float]:
        """Return the ends of the chunk's Fs or Is so far."""
        return self.forwards[chunk] if kind is Kind.F else self.inputs[chunk]

    def fits(self, change: float) -> bool:
        """Return True if this much more memory is within the limit."""
        return self.memory + change <= self._limit

    def place_forward(self, chunk: int, arrival: float = 0.0) -> None:
        """Place F of the chunk's next microbatch, whose input arrives at ``arrival``."""
        ends = self.forwards[chunk]
        self.row.append((Kind.F, chunk, len(ends)))
        ends.append(self._run(self.costs.forward, self.costs.held, arrival))

    def place_input(self, chunk: int, arrival: float = 0.0) -> None:
        """Place I of the chunk's next microbatch, whose gradient arrives at ``arrival``, and queue its W."""
        ends = self.inputs[chunk]
        self.owed.append((chunk, len(ends)))
        self.row.append((Kind.I, chunk, len(ends)))
        ends.append(self._run(self.costs.backward_input, self.costs.input_change, arrival))

    def place_weight(self) -> None:
        """Place the oldest pending W."""
        chunk, microbatch = self.owed.popleft()
        self.row.append((Kind.W, chunk, microbatch))
        self._run(self.costs.backward_weight, -self.costs.freed_by_weight, 0.0)

    def _run(self, time: float, change: float, arrival: float) -> float:
        """Run the op that was just added to the row and return its end."""
        if not self.fits(change):
            raise InfeasibleError(
                f"rank {self._rank} has no room for its next op after {len(self.row) - 1} ops", field="memory_limit"
            )
        start = max(self.clock, arrival)
        if len(self.row) > 1:
            self.bubble += start - self.clock
            self._longest.bubble = max(self._longest.bubble, self.bubble)
        self.memory += change
        self.clock = start + time
        return self.clock

    def make_room(self, change: float) -> None:
        """Place pending Ws until this much more memory fits or none is pending."""
        while self.owed and not self.fits(change):
            self.place_weight()

    def fill_wait(self, arrival: float) -> None:
        """Place pending Ws that end no later than ``arrival``."""
        while self.owed and arrival >= self.clock + self.costs.backward_weight:
            self.place_weight()

    def finish(self) -> None:
        """Place all pending Ws."""
        while self.owed:
            self.place_weight()


class ArrivalTimes:
    """Arrival times of the inputs of the ranks' next ops.

    ``ranks`` are the greedy ranks of a placement with one copy of the model; a transfer takes ``transfer``.
    """

    def __init__(self, placement: Placement, ranks: Sequence[GreedyRank], transfer: float) -> None:
        self._ranks = ranks
        self._transfer = transfer
        self._sources: dict[tuple[Kind, int, int], tuple[Kind, int, int] | None] = {}
        where = list(zip(placement.rank_of[0], placement.chunk_of[0], strict=True))
        for kind in (Kind.F, Kind.I):
            for stage, (rank, chunk) in enumerate(where):
                needed = source_of(kind, stage, placement.stages)
                there = None if needed is None or where[needed[1]][0] == rank else (needed[0], *where[needed[1]])
                self._sources[kind, rank, chunk] = there

    def of(self, kind: Kind, rank: int, chunk: int = 0) -> float | None:
        """Return when the input of the chunk's next F or I arrives; None if it comes from the same rank.

        Raises InfeasibleError if the other rank has not placed that op yet, because its memory limit is too small.
        """
        source = self._sources[kind, rank, chunk]
        if source is None:
            return None
        sent = self._ranks[source[1]].ends(source[0], source[2])
        number = len(self._ranks[rank].ends(kind, chunk))
        if number >= len(sent):
            raise InfeasibleError(
                f"rank {source[1]} has no room for the {kind.name} of microbatch {number} that rank {rank} waits for",
                field="memory_limit",
            )
        return sent[number] + self._transfer


def greedy_ranks(per_rank: Sequence[RankCosts], chunks: int) -> list[GreedyRank]:
    """Return ranks without ops, with this many chunks each."""
    longest = LargestBubble()
    return [GreedyRank(rank, costs, chunks, longest) for rank, costs in enumerate(per_rank)]


def to_schedule(ranks: Sequence[GreedyRank], placement: Placement, microbatches: int) -> Schedule:
    """Return the schedule with the rows of these ranks."""
    rows = [_columns(rank.row, placement.stages_on(index)) for index, rank in enumerate(ranks)]
    return Schedule.from_rows(placement, microbatches, rows)


def _columns(row: list[tuple[Kind, int, int]], stages: tuple[int, ...]) -> Columns:
    kind, chunk, microbatch = np.array(row, np.int32).T
    return ops(kind, np.array(stages, np.int32)[chunk], microbatch)
