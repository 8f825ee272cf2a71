"""Construction of views from a timeline with its memory, or from a schedule alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import COMPUTE, Limits, Segments
from pipeplan.drawing.view import WAITS, Bars, Curves, IdleGaps, Integers, LanePart, Lanes, Links, PairLanes, View
from pipeplan.model import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    NO_GROUP,
    Floats,
    Kind,
    MemoryCurve,
    MemoryUse,
    Reason,
    Schedule,
    Timeline,
    among,
    collectives_awaited,
    dependencies,
    tolerances,
)


class IdleReasons(Protocol):
    """Reasons for idle times, in columns, such as :class:`pipeplan.simulation.idle_gaps.Pieces`."""

    @property
    def rank(self) -> Integers:
        """Rank that idles."""

    @property
    def start(self) -> Floats:
        """Start of each idle time."""

    @property
    def end(self) -> Floats:
        """End of each idle time."""

    @property
    def reason(self) -> Integers:
        """Reason: code of :class:`~pipeplan.model.Reason`."""

    @property
    def cause(self) -> Integers:
        """Op that the rank waits for: position among the timeline's timed ops, -1 for none."""


def view_of(
    timeline: Timeline,
    memory: MemoryUse | None = None,
    *,
    title: str = "",
    limit: Limits | None = None,
    reasons: IdleReasons | None = None,
    costs: str = "",
    segments: Segments | None = None,
) -> View:
    """Return the view of a timeline.

    Parameters
    ----------
    memory
        Memory to draw below: in the unit of the limit, else in bytes including static memory if known, else in
        activations.
    title
        Title; default the schedule's name.
    limit
        Memory limit of every rank.
    reasons
        Reasons for idle times.
    costs
        Name of the costs of the simulation.
    segments
        Segments of the ops, for the lanes of overlapped pairs.
    """
    schedule = timeline.schedule
    labels = tuple(f"rank {rank}" for rank in range(schedule.ranks))
    return View(
        title=title or schedule.name,
        unit=timeline.unit,
        source=timeline.source,
        makespan=timeline.makespan,
        idle_over_total=timeline.bubble.idle_over_total,
        chunks=schedule.placement.chunks,
        copies=schedule.placement.copies,
        lanes=Lanes(label=labels, first_start=timeline.first_start, last_end=timeline.last_end, work=timeline.work),
        bars=_bars(timeline),
        links=_links(timeline),
        memory=_curves(timeline, memory, limit),
        gaps=None if reasons is None else _gaps(timeline, reasons),
        costs=costs,
        pairs=None if segments is None else _pairs(schedule, segments),
    )


def order_of(schedule: Schedule, *, title: str = "") -> View:
    """Return the view of a schedule, which has no times: each op or overlapped pair takes one position in its rank's order.

    Positions on different ranks are unrelated.
    """
    turn = np.cumsum(~schedule.joined)
    first = np.concatenate(([0], turn))[schedule.offsets[:-1]]
    end = (turn - np.repeat(first, np.diff(schedule.offsets))).astype(np.float64)
    timeline = Timeline(schedule, end - 1, end, "ops")
    view = view_of(timeline, title=title)
    return replace(view, source="order")


def _bars(timeline: Timeline) -> Bars:
    schedule = timeline.schedule
    columns, placement = schedule.columns, schedule.placement
    copy = placement.copy_of(np.maximum(columns.microbatch, 0), schedule.microbatches)
    chunk = np.array(placement.chunk_of, np.int32)[copy, columns.stage]
    return Bars(
        lane=schedule.rank,
        start=timeline.start,
        end=timeline.end,
        part=_parts(timeline),
        kind=columns.kind,
        chunk=chunk,
        copy=copy,
        stage=columns.stage,
        microbatch=columns.microbatch,
        slice=columns.slice,
        group=columns.group,
    )


def _parts(timeline: Timeline) -> NDArray[np.int8]:
    schedule, columns = timeline.schedule, timeline.schedule.columns
    part = np.full(len(schedule), LanePart.FULL, np.int8)
    paired = columns.group != NO_GROUP
    part[paired] = np.where(columns.kind[paired] == Kind.F, LanePart.UPPER, LanePart.LOWER)
    part[~among(columns.kind, COMPUTE_KINDS)] = LanePart.STRIP
    part[columns.kind == Kind.OFFLOAD] = LanePart.TO_HOST
    part[columns.kind == Kind.RELOAD] = LanePart.FROM_HOST
    part[timeline.timed & among(columns.kind, COLLECTIVE_KINDS)] = LanePart.COLLECTIVE
    return part


def _links(timeline: Timeline) -> Links:
    needs = list(dependencies(timeline.schedule).all)
    codes = list(range(len(needs)))
    if (timeline.timed & among(timeline.schedule.columns.kind, COLLECTIVE_KINDS)).any():
        needs.append(_collectives(timeline.schedule))
        codes.append(WAITS.index("collective"))
    targets = [np.flatnonzero(sources >= 0).astype(np.int32) for sources in needs]
    return Links(
        source=np.concatenate([sources[target] for sources, target in zip(needs, targets, strict=True)]),
        target=np.concatenate(targets),
        why=np.repeat(np.array(codes, np.int8), [len(target) for target in targets]),
    )


def _collectives(schedule: Schedule) -> NDArray[np.int32]:
    """Return the collective that each op is the first to wait for, -1 for none.

    The op that computes after a WAIT_REDUCE_GRAD waits for the REDUCE_GRAD, too.
    """
    awaited = collectives_awaited(schedule)
    computes = np.flatnonzero(among(schedule.columns.kind, COMPUTE_KINDS))
    later = np.ones(len(computes), np.bool_)
    later[np.unique(awaited[computes], return_index=True)[1]] = False
    awaited[computes[later]] = -1
    waits = schedule.where(Kind.WAIT_REDUCE_GRAD)
    behind = np.searchsorted(computes, waits)
    waits, after = waits[behind < len(computes)], computes[behind[behind < len(computes)]]
    here = (schedule.rank[after] == schedule.rank[waits]) & (awaited[after] < 0)
    awaited[after[here]] = awaited[waits[here]]
    return awaited


def _gaps(timeline: Timeline, idle: IdleReasons) -> IdleGaps:
    timed = np.flatnonzero(timeline.timed)
    cause = np.where(idle.cause < 0, -1, timed[np.maximum(idle.cause, 0)])
    return IdleGaps(
        lane=idle.rank,
        start=idle.start,
        end=idle.end,
        reason=idle.reason,
        cause=cause,
        reasons=tuple(reason.key for reason in Reason),
    )


def _pairs(schedule: Schedule, segments: Segments) -> PairLanes | None:
    forward, backward = schedule.pairs
    if not len(forward) or not segments.communication:
        return None
    stage, inputs = schedule.columns.stage, schedule.columns.kind[backward] == Kind.I
    of_stages = np.unique(np.column_stack((stage[forward], stage[backward], inputs)), axis=0)
    first, second, is_input = of_stages.T
    times = segments.together(first, second, is_input > 0)
    lanes = [segments.lanes(*pair) for pair in of_stages.tolist()]
    pieces = [piece for lane in lanes for piece in lane]
    return PairLanes(
        communication=segments.communication,
        forward=first,
        backward=second,
        inputs=is_input,
        time=times.time,
        exposed=times.exposed,
        hidden=times.hidden,
        offsets=np.cumsum([0, *map(len, lanes)]),
        lane=np.array([piece.lane != COMPUTE for piece in pieces], np.int8),
        kind=np.array([piece.kind for piece in pieces], np.int8),
        begin=np.array([piece.begin for piece in pieces]),
        end=np.array([piece.end for piece in pieces]),
    )


def _curves(timeline: Timeline, memory: MemoryUse | None, limit: Limits | None) -> Curves | None:
    if memory is None:
        return None
    in_bytes = memory.bytes is not None if limit is None else not limit.in_activations
    peak = memory.peak_bytes if in_bytes else memory.peak_activation
    base = memory.static if in_bytes else np.zeros(timeline.schedule.ranks)
    assert peak is not None
    offsets, time, level, gathered = _steps(timeline, memory.curve(timeline, in_bytes=in_bytes), base)
    return Curves(
        unit="bytes" if in_bytes else "activations",
        offsets=offsets,
        time=time,
        level=level,
        peak=peak,
        limit=None if limit is None else limit.values,
        parameters=gathered,
    )


def _steps(timeline: Timeline, curve: MemoryCurve, base: Floats) -> tuple[Integers, Floats, Floats, Floats | None]:
    """Return offsets, times, levels and parameters of the curves: each op's from when its change takes effect."""
    schedule, lane = timeline.schedule, curve.rank
    ranks = np.arange(schedule.ranks, dtype=np.int32)
    order = np.argsort(np.concatenate((ranks, lane)), kind="stable")
    lanes = np.concatenate((ranks, lane))[order]
    times = np.concatenate((np.zeros(len(ranks)), curve.time))[order]
    held = np.concatenate((base, curve.level + base[lane]))[order]
    for span in np.split(times, np.searchsorted(lanes, ranks[1:])):
        np.maximum.accumulate(span, out=span)  # measured clocks may disagree by a little
    same_time = tolerances.ROUNDING * timeline.makespan
    last = np.concatenate(((lanes[1:] != lanes[:-1]) | (times[1:] - times[:-1] > same_time), [True]))
    offsets = np.searchsorted(lanes[last], np.arange(schedule.ranks + 1))
    if curve.parameters is None:
        return offsets, times[last], held[last], None
    gathered = np.concatenate((np.zeros(len(ranks)), curve.parameters))[order]
    return offsets, times[last], held[last], gathered[last]
