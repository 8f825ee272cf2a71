"""A timeline: the start and end of every op of a schedule, simulated or measured, and reasons why ranks idle in between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from pipeplan.foundation.errors import CostError
from pipeplan.foundation.records import Record
from pipeplan.model import tolerances
from pipeplan.model.op import COLLECTIVE_KINDS, COMPUTE_KINDS, HOST_KINDS, NO_GROUP, Kind, among
from pipeplan.model.schedule import Displayed, Schedule
from pipeplan.model.values import LARGEST, Bools, Floats, require_short

Objective = Literal["makespan", "span"]
"""Length of a timeline that a search minimizes: the makespan, or the longest span of a rank."""


class Bubble(Record, frozen=True):
    """Idle time as three ratios.

    Attributes
    ----------
    idle_over_total
        ``1 - work / (p * makespan)``.
    over_ideal
        ``(p * makespan - work) / work``.
    span
        ``(longest span - work of that rank) / longest span``: the bubble if the optimizer step needs no barrier.
    """

    idle_over_total: float
    over_ideal: float
    span: float


@dataclass(frozen=True, eq=False)
class Timeline(Displayed):
    """Start and end of every op of a schedule, on one clock.

    Attributes
    ----------
    schedule
        The schedule that was run or simulated.
    start, end
        Shape (ops,), in the order of the schedule's columns, in the unit of the costs. Read-only.
    unit
        Unit of time for axes: ``us``, ``ms``; empty if unknown.
    source
        ``simulated`` or ``measured``.
    occupied
        Time for which each rank is occupied, shape (ranks,), in the unit of the costs: from its first start to its last
        end, with the overhead before the first op and after the last one. None if that overhead is zero or unknown.

    Raises
    ------
    InputError
        If the unit is too long.
    CostError
        If a time is not finite or too large, an op ends before it starts, or two ops that are not an overlapped pair
        compute at once on a rank. Messages, host copies and stage-wide ops may overlap computation. Measured ops may
        overlap slightly; see :data:`tolerances.MEASURED`.
    """

    schedule: Schedule
    start: Floats
    end: Floats
    unit: str = ""
    source: Literal["simulated", "measured"] = "simulated"
    occupied: Floats | None = None

    def __post_init__(self) -> None:
        require_short(self.unit, "a unit of time")
        for array in (self.start, self.end):
            if array.shape != (len(self.schedule),):
                raise ValueError(f"a timeline of {len(self.schedule)} ops needs that many times, not {array.shape}")
            array.flags.writeable = False
        first, last = self.start, self.end
        if plain := self._follow_each_other():
            filled = np.diff(self.schedule.offsets) > 0
            first, last = first[self.schedule.offsets[:-1][filled]], last[self.schedule.offsets[1:][filled] - 1]
        for times in (first, last):
            if not -LARGEST <= times.min(initial=0.0) <= times.max(initial=0.0) <= LARGEST:
                raise CostError(
                    f"the times of {self.schedule.name or 'the schedule'} add up to more than {LARGEST:g}, or are not "
                    "finite; choose a larger unit"
                )
        if not plain:
            self._require_possible()

    def _follow_each_other(self) -> bool:
        """Return True if all ranks only compute, one op after the other, in the order of their rows.

        Most simulations do. The first start and last end of each rank are then its extremes, and no further check is needed.
        """
        schedule, start, end = self.schedule, self.start, self.end
        if not schedule.kinds.issubset(COMPUTE_KINDS) or schedule.joined.any() or not (start <= end).all():
            return False
        after = start[1:] >= end[:-1]
        starts = schedule.offsets[1:-1]
        after[starts[(starts > 0) & (starts < len(start))] - 1] = True
        return bool(after.all())

    def _require_possible(self) -> None:
        """Check that no op ends before it starts, and that no rank computes two ops at once."""
        schedule, slack = self.schedule, tolerances.ROUNDING * self.makespan
        backwards = np.flatnonzero(self.end < self.start - slack)
        if backwards.size:
            op = int(backwards[0])
            raise CostError(f"{schedule.place(op)} ends at {self.end[op]:g}, before it starts at {self.start[op]:g}")
        computes = among(schedule.columns.kind, COMPUTE_KINDS) & (self.end > self.start)
        share = tolerances.MEASURED if self.source == "measured" else 0.0
        for first, stop in pairwise(schedule.offsets.tolist()):
            ops = first + np.flatnonzero(computes[first:stop])
            ops = ops[np.argsort(self.start[ops], kind="stable")]
            # latest[i]: the op that ends last among the first i + 1 by start. Only that one can reach into op i + 1.
            ends = self.end[ops]
            latest = np.maximum.accumulate(np.where(ends >= np.maximum.accumulate(ends), np.arange(len(ops)), 0))
            before, after = ops[latest[:-1]], ops[1:]
            shared = np.minimum(self.end[before], self.end[after]) - self.start[after]
            shorter = np.minimum(self.end[before] - self.start[before], self.end[after] - self.start[after])
            pairs = (schedule.columns.group[after] != NO_GROUP) & (
                schedule.columns.group[after] == schedule.columns.group[before]
            )
            wrong = np.flatnonzero(~pairs & (shared > slack + share * shorter))
            if wrong.size:
                raise CostError(self._at_once(int(before[wrong[0]]), int(after[wrong[0]])))

    def _at_once(self, before: int, after: int) -> str:
        times = (f"{self.start[op]:g} to {self.end[op]:g}" for op in (after, before))
        return (
            f"{self.schedule.place(after)} runs while {self.schedule.op(before)} does ({' and '.join(times)}): a rank "
            "computes one op at a time, or an overlapped pair"
        )

    @cached_property
    def timed(self) -> Bools:
        """Mask of the ops for which a rank may wait, shape (ops,): ops that compute, and copies to the host and back.

        If collectives of a simulated timeline take time, they and the waits for them are among these. Those of measured
        timelines are not: a trace shows when a rank posted them, and not when they ran.
        """
        kind = self.schedule.columns.kind
        timed = among(kind, (*COMPUTE_KINDS, *HOST_KINDS))
        if self.source == "measured" or self.schedule.kinds.isdisjoint(COLLECTIVE_KINDS):
            return timed
        collectives = among(kind, COLLECTIVE_KINDS)
        if (self.end[collectives] > self.start[collectives]).any():
            timed |= collectives | (kind == Kind.WAIT_REDUCE_GRAD)
        return timed

    def from_first_start(self) -> Timeline:
        """Return the same timeline with time 0 at its first start, as runs are measured: no overhead precedes its ops.

        Simulated collectives that take no time start nothing.
        """
        counted = self.start[self.timed] if self.source == "simulated" else self.start
        zero = float(counted.min()) if len(counted) else 0.0
        return replace(self, start=self.start - zero, end=self.end - zero) if zero else self

    @cached_property
    def makespan(self) -> float:
        """Time from 0 to the end of the last op on any rank."""
        return float(self.end.max(initial=0.0))

    @cached_property
    def first_start(self) -> Floats:
        """First start on each rank, shape (ranks,); 0 for a rank without ops."""
        return self._per_rank(np.minimum, self.start)

    @cached_property
    def last_end(self) -> Floats:
        """Last end on each rank, shape (ranks,); 0 for a rank without ops."""
        return self._per_rank(np.maximum, self.end)

    @cached_property
    def spans(self) -> Floats:
        """Time from the first op of each rank to its last, shape (ranks,).

        For simulated ranks this includes the overhead before the first op and the messages after the last one, because
        without a barrier the next step starts after them. For measured ranks it is the time from the first start to the
        last end.
        """
        return self.last_end - self.first_start if self.occupied is None else self.occupied

    @property
    def longest_span(self) -> float:
        """Longest span of any rank: the step time without a barrier, less the time that a step adds after its ops."""
        return float(self.spans.max(initial=0.0))

    @cached_property
    def work(self) -> Floats:
        """Busy time of each rank in compute ops, shape (ranks,). An overlapped pair counts once."""
        counted = among(self.schedule.columns.kind, COMPUTE_KINDS) & ~self.schedule.joined
        return self._per_rank(np.add, np.where(counted, self.end - self.start, 0.0))

    @property
    def idle(self) -> Floats:
        """Time from 0 to the makespan in which each rank does not compute, shape (ranks,)."""
        idle: Floats = self.makespan - self.work
        return np.where(np.abs(idle) < tolerances.ROUNDING * self.makespan, 0.0, idle)

    @property
    def bubble(self) -> Bubble:
        """Idle time as three ratios."""
        total = self.schedule.ranks * self.makespan
        work = float(self.work.sum())
        longest = int(self.spans.argmax())
        span = float(self.spans[longest])
        return Bubble(
            1 - work / total if total else 0.0,
            (total - work) / work if work else 0.0,
            (span - float(self.work[longest])) / span if span else 0.0,
        )

    def __repr__(self) -> str:
        return f"<Timeline of {self.schedule.name or 'a schedule'}: {self.source}, makespan {self.makespan:.6g}{self.unit}>"

    def _per_rank(self, reduction: np.ufunc, values: Floats) -> Floats:
        offsets = self.schedule.offsets
        filled = np.flatnonzero(np.diff(offsets))
        answer = np.zeros(self.schedule.ranks)
        if len(filled):
            answer[filled] = reduction.reduceat(values, offsets[filled])
        return answer


class Reason(IntEnum):
    """Reason why a rank idles."""

    START_UP = 0
    """nothing could have arrived yet"""
    COMPUTE = 1
    """waits for an op on another rank"""
    TRANSFER = 2
    """waits for a message that is under way"""
    IMBALANCE = 3
    """waits because an op of a slower stage takes longer than the mean"""
    MEMORY = 4
    """had a forward to do that did not fit under the memory limit"""
    DRAIN = 5
    """has done all its work"""
    OVERHEAD = 6
    """is between ops: the gap before one, or what a message takes from its rank"""
    OFFLOAD = 7
    """waits for a copy to the host, which frees its memory"""
    RELOAD = 8
    """waits for a copy back from the host"""
    QUEUE = 9
    """waits for a message that is ready, but behind others on its streams or without its receive"""
    UNSHARD = 10
    """waits until the parameters of a stage are gathered"""
    REDUCE = 11
    """waits until gradients are reduced"""

    @property
    def key(self) -> str:
        """Name of the reason in reports, such as ``start-up``."""
        return self.name.lower().replace("_", "-")


REASON_WORDS = {
    Reason.START_UP: "before the first microbatch arrives",
    Reason.COMPUTE: "waiting for ops on other ranks",
    Reason.TRANSFER: "waiting for messages",
    Reason.IMBALANCE: "waiting for slower stages",
    Reason.MEMORY: "held back by the memory limit",
    Reason.DRAIN: "after the last op",
    Reason.OVERHEAD: "between ops",
    Reason.OFFLOAD: "waiting for copies to the host",
    Reason.RELOAD: "waiting for copies back from the host",
    Reason.QUEUE: "waiting for messages behind others",
    Reason.UNSHARD: "waiting for the parameters of stages",
    Reason.REDUCE: "waiting for reduced gradients",
}
"""Words for each reason in sentences, after an idle time, and in legends."""
