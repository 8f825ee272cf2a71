"""Costs in a timeline's own times: mean times of each stage, the shortest transfer, and the gap between ops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import PairTable, Settings
from pipeplan.model import HOST_KINDS, Floats, Kind, Timeline, among, crosses_ranks, dependencies, tolerances
from pipeplan.simulation.critical import compute_only

TIMED_KINDS = {
    Kind.F: "forward_times",
    Kind.B: "backward_times",
    Kind.I: "backward_input_times",
    Kind.W: "backward_weight_times",
    Kind.R: "recompute_times",
}
"""The setting of each kind's times."""


def transfer_of(planned: Timeline) -> float:
    """Return the transfer time: the least time between an op and one on another rank that needs it.

    It is that time wherever a rank waits for a message, as every rank but the first does for its first op.
    """
    arrival = dependencies(planned.schedule).arrival
    later = np.flatnonzero(crosses_ranks(planned.schedule, arrival))
    return (
        max(float((planned.start[later] - planned.end[arrival[later]]).min(initial=np.inf)), 0.0) if later.size else 0.0
    )


def gap_of(planned: Timeline) -> float:
    """Return the overhead before each op of a simulated timeline: the least time between two ops of a rank.

    Some ops wait for nothing, as a backward on the last stage right after its forward. 0 for a measured timeline, in which
    the least is an accident.
    """
    schedule = planned.schedule
    later = 1 + np.flatnonzero((schedule.rank[1:] == schedule.rank[:-1]) & ~schedule.joined[1:])
    if planned.source == "measured" or not later.size:
        return 0.0
    least = float((planned.start[later] - planned.end[later - 1]).min())
    return least if least > tolerances.ROUNDING * planned.makespan else 0.0


def settings_measured(timeline: Timeline, settings: Settings) -> Settings:
    """Return the settings with the times of a timeline: mean op times of each stage, shortest transfer, gap between ops."""
    compute = compute_only(timeline)
    gap = gap_of(compute)
    between = max(transfer_of(compute) - gap, 0.0)
    return replace(with_op_times(timeline, settings), p2p_time=between, op_gap=gap or None)


def with_op_times(timeline: Timeline, settings: Settings) -> Settings:
    """Return the settings with the mean time of each kind of op on each stage.

    An op of an overlapped pair counts as half of the pair, and only where no op of its kind runs alone on the stage. A kind
    that some stage lacks is derived from the others, as for costs without that kind. Copies to the host and back are of
    one kind. Pairs have a time per stage of the forward, or of both stages where these differ; segments are left out.
    """
    copies = _copies(timeline)
    timeline = compute_only(timeline)
    second = timeline.schedule.joined
    first = np.append(second[1:], False)
    times = {kind: _means(timeline, kind, first | second) for kind in TIMED_KINDS}
    return replace(
        settings,
        forward_times=times[Kind.F],
        backward_times=times[Kind.B],
        backward_input_times=times[Kind.I],
        backward_weight_times=times[Kind.W],
        recompute_times=times[Kind.R],
        overlap_times=_pairs(timeline, times),
        segments=None,
        pair_slowdown=None,
        delayed_weights=False,
        offload_times=settings.offload_times if copies is None else copies,
        offload_bandwidth=settings.offload_bandwidth if copies is None else None,
        time_unit=timeline.unit,
    )


def _copies(timeline: Timeline) -> tuple[float, ...] | None:
    """Return the mean time of a copy to the host or back on each stage; a stage without copies gets the longest."""
    times = _mean(timeline, among(timeline.schedule.columns.kind, HOST_KINDS))
    copied = np.isfinite(times)
    return tuple(np.where(copied, times, times[copied].max()).tolist()) if copied.any() else None


def _means(timeline: Timeline, kind: Kind, paired: NDArray[np.bool_]) -> tuple[float, ...] | None:
    """Return the mean time of a kind on each stage; None unless every stage has some."""
    schedule = timeline.schedule
    of_kind = schedule.columns.kind == kind
    alone, whole = _mean(timeline, of_kind & ~paired), _mean(timeline, of_kind)
    times = np.where(np.isfinite(alone), alone, whole / 2)
    return tuple(times.tolist()) if np.isfinite(times).all() else None


def _mean(timeline: Timeline, chosen: NDArray[np.bool_]) -> Floats:
    """Return the mean time of the chosen ops on each stage, shape (stages,); NaN on a stage that has none."""
    stage, stages = timeline.schedule.columns.stage[chosen], timeline.schedule.stages
    count = np.bincount(stage, minlength=stages)
    total = np.bincount(stage, (timeline.end - timeline.start)[chosen], minlength=stages)
    means = np.full(stages, np.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means


def _pairs(timeline: Timeline, halves: Mapping[Kind, tuple[float, ...] | None]) -> PairTable | None:
    """Return the mean times of pairs: by the forward's stage, or a table if forwards of a stage ran with several stages.

    A pair is at least as long as its longer half. Without a table, None unless every stage has a pair. In a table, pairs of
    stages that never ran save the mean share of the others.
    """
    stages, stage = timeline.schedule.stages, timeline.schedule.columns.stage.astype(np.int64)
    forward, backward = timeline.schedule.pairs
    cell = stage[forward] * stages + stage[backward]
    count, total = (
        np.bincount(cell, weights, stages**2).reshape(stages, stages)
        for weights in (None, (timeline.end - timeline.start)[forward])
    )
    full, inputs, weights = (halves[kind] for kind in (Kind.B, Kind.I, Kind.W))
    if full is None and inputs is not None and weights is not None:
        full = tuple(np.add(inputs, weights).tolist())
    if halves[Kind.F] is None or full is None or (count > 0).sum(axis=1).max() <= 1:
        if not count.any(axis=1).all():
            return None
        times = total.sum(axis=1) / count.sum(axis=1)
        for kind in (Kind.F, Kind.B):
            times = np.maximum(times, halves[kind] or 0.0)
        return tuple(times.tolist())
    first, seen = np.array(halves[Kind.F])[:, None], count > 0
    alone = first + np.array(full)
    share = np.divide(total, count * alone, out=np.zeros_like(alone), where=seen)
    table = np.maximum(np.where(seen, share, share[seen].mean()) * alone, np.maximum(first, full))
    return tuple(map(tuple, table.tolist()))
