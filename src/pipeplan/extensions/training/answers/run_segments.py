"""Segments of the ops of a run, from the kernels of those that ran alone.

Where a stage ran no I and W alone, its backward stands for both: I has its communications, and each has half of its
computations. An op that only computes is one segment; a W is divided among the computations of I, in proportion to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pipeplan.costs import COMPUTE, OPS, OpSegments, Segment, Segments, Spread
from pipeplan.extensions.training.traces import MeasuredRun
from pipeplan.extensions.training.traces.pieces import segments_of
from pipeplan.model import Kind, Timeline

_MOST_SLOWDOWN = 4.0
"""Largest factor on computation beside communication that pairs of a run are explained by."""


@dataclass(frozen=True, slots=True)
class RunSegments:
    """Segments of the stages of a run; None if its ops do not communicate, or some stage's are unknown.

    ``remarks`` are sentences on what they leave out and on how well pairs agree with them.
    """

    segments: Segments | None = None
    remarks: tuple[str, ...] = ()

    def settings(self) -> dict[str, Any]:
        """Return the settings of the segments and of the times that are their sums."""
        if self.segments is None:
            return {}
        times = {f"{op}_times": tuple(stage.time(op) for stage in self.segments.stages) for op in OPS}
        # A full backward and a pair take what their segments say; overlap times beside them are an error.
        return {**times, "backward_times": None, "overlap_times": None, **self.segments.settings()}


def run_segments(run: MeasuredRun, timelines: Sequence[Timeline], times: Sequence[Mapping[str, Spread]]) -> RunSegments:
    """Return the segments of a run's ops, which add up to ``times``: of each stage's ops, by the name of their kind.

    These, and the ``timelines`` of its compute ops, are in milliseconds.
    """
    if not any(any(row) for row in run.exposed):
        return RunSegments()
    remarks: list[str] = []
    found = [_of_stage(run, stage, of_stage, remarks) for stage, of_stage in enumerate(times)]
    if None in found:
        remark = f"no segments: no trace has the kernels of a forward and a backward of stage {found.index(None)} alone"
        return RunSegments(remarks=(remark,))
    segments = Segments(tuple(filter(None, found)))
    if not segments.communication:
        return RunSegments()
    split = all((kind, stage) in run.pieces for kind in (Kind.I, Kind.W) for stage in range(len(found)))
    segments, of_pairs = _beside_each_other(segments, timelines, may_delay=split)
    return RunSegments(segments, (*remarks, *of_pairs))


def _of_stage(run: MeasuredRun, stage: int, times: Mapping[str, Spread], remarks: list[str]) -> OpSegments | None:
    """Return the segments of a stage, and add remarks; None if F, or B and one of its halves, never ran alone."""
    lists: dict[Kind, tuple[Segment, ...]] = {}
    for kind in (Kind.F, Kind.B, Kind.I, Kind.W):
        if ops := run.pieces.get((kind, stage)):
            lists[kind], count = segments_of(ops, times[kind.name].median)
            if count < len(ops):
                others = f"{len(ops) - count} of {len(ops)} {kind.name} have other communications and do not count"
                remarks.append(f"segments of stage {stage}: {others}")
    inputs, weights = lists.get(Kind.I), lists.get(Kind.W)
    if (inputs is None or weights is None) and (full := lists.get(Kind.B)):
        inputs = tuple((name, time / 2 if name == COMPUTE else time) for name, time in full)
        weights = tuple((name, time / 2) for name, time in full if name == COMPUTE)
    elif inputs and weights and len(weights) == 1:
        computes = [time for name, time in inputs if name == COMPUTE]
        weights = tuple((COMPUTE, weights[0][1] * time / sum(computes)) for time in computes)
    if Kind.F not in lists or not inputs or not weights:
        return None
    return OpSegments(forward=lists[Kind.F], backward_input=inputs, backward_weight=weights)


def _beside_each_other(
    segments: Segments, timelines: Sequence[Timeline], *, may_delay: bool
) -> tuple[Segments, tuple[str, ...]]:
    """Return the segments with which pairs take about as long as in the run, and a remark on those.

    Weights are delayed if that is nearer to the run, and ``may_delay`` says that I and W are known. If pairs took longer
    than that, computation beside communication is slower.
    """
    schedule = timelines[0].schedule
    forward, backward = schedule.pairs
    if not forward.size:
        return segments, ()
    stage = schedule.columns.stage
    pairs = stage[forward], stage[backward], schedule.columns.kind[backward] == Kind.I
    measured = float(np.median([(timeline.end - timeline.start)[forward] for timeline in timelines], axis=0).mean())

    def predicted(delayed: bool, slowdown: float = 1.0) -> float:
        changed = replace(segments, delayed_weights=delayed, slowdown=slowdown)
        return float(changed.together(*pairs).time.mean())

    delayed = may_delay and abs(predicted(True) - measured) < abs(predicted(False) - measured)
    low, high = 1.0, _MOST_SLOWDOWN
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if predicted(delayed, middle) < measured else (low, middle)
    slowdown = low if 1 + 1e-3 < low < _MOST_SLOWDOWN - 1e-3 else 1.0
    modelled = predicted(delayed, slowdown)
    remark = f"overlapped pairs take {measured:.4g} ms on average, and {modelled:.4g} ms by their segments"
    remark += " with delayed weights" if delayed else ""
    remark += f", if computation beside communication takes {slowdown:.3g} times as long" if slowdown > 1 else ""
    return replace(segments, slowdown=slowdown, delayed_weights=delayed), (remark,)
