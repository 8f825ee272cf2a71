"""Segments from the kernels of a run: what a trace was made of is what is found, and what its pairs took is what they say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.costs import OpSegments, Segment, Segments, Settings
from pipeplan.extensions.training.answers.run_costs import RunCosts, run_costs
from pipeplan.extensions.training.traces.kineto import parse_rank
from pipeplan.extensions.training.traces.traced_run import traced_run
from pipeplan.model import Timeline
from tests.extensions.training.traces.gpu_traces import DEEP_EP, KERNELS, gpu_traces, parts_of, trace_of_parts


def stage(first: float, *exchanges: float) -> OpSegments:
    """Segments of a stage: computations with all-to-alls between them, those of W with the ones of I."""
    computes = [first, *(1.0 + 0.25 * number for number in range(len(exchanges)))]
    forward = [("compute", computes[0])]
    for exchange, compute in zip(exchanges, computes[1:], strict=True):
        forward += [("all_to_all", exchange), ("compute", compute)]
    weights = [("compute", time) for name, time in forward if name == "compute"]
    return OpSegments(
        forward=tuple(forward), backward_input=tuple(reversed(forward)), backward_weight=tuple(weights[::-1])
    )


STAGES = (stage(2, 0.5, 0.4), stage(1, 0.6, 0.3, 0.7), stage(1.5, 0.8), stage(1.25, 0.5, 0.5))


def costs_of(timeline: Timeline, segments: Segments, **options: Any) -> RunCosts:
    parts = parts_of(timeline, segments)
    ranks = range(timeline.schedule.ranks)
    traces = [parse_rank(f"rank{rank}", trace_of_parts(timeline, rank, parts, **options)) for rank in ranks]
    return run_costs(traced_run(traces), "run")


def simulated(name: str, **settings: Any) -> tuple[Timeline, Segments]:
    shape = {"ranks": 2, "microbatches": 8, "time_unit": "ms", "p2p_time": 0.5}
    result = pipeplan.simulate(name, **shape, segments=STAGES, **settings)
    assert result.costs.segments is not None
    return result.timeline, result.costs.segments


def assert_same(found: tuple[Segment, ...], written: tuple[Segment, ...], within: float) -> None:
    assert [name for name, _ in found] == [name for name, _ in written]
    assert [time for _, time in found] == pytest.approx([time for _, time in written], abs=within)


@pytest.mark.parametrize("kernels", [KERNELS, KERNELS | {"all_to_all": DEEP_EP, "compute": ("gemm", "elementwise")}])
@pytest.mark.parametrize("name", ["interleaved-1f1b-overlap", "dualpipev"])
def test_a_run_made_of_segments_gives_their_pair_times_back(tmp_path, name, kernels):
    timeline, segments = simulated(name, chunks=2)
    costs = costs_of(timeline, segments, kernels=kernels)
    settings = costs.settings()
    assert settings.segments is not None
    for found, written in zip(settings.segments, STAGES, strict=True):
        assert_same(found.forward, written.forward, 0.003)
    assert (settings.overlap_times, settings.pair_slowdown) == (None, None)
    pipeplan.CostProfile.of(costs).save(tmp_path / "costs.yaml")
    again = pipeplan.simulate(name, config=tmp_path / "costs.yaml")
    pairs = timeline.schedule.joined
    taken, planned = ((of.end - of.start)[pairs] for of in (timeline, again.timeline))
    assert len(set(taken.round(3))) > 1
    np.testing.assert_allclose(planned, taken, rtol=2e-3)
    assert again.makespan == pytest.approx(timeline.makespan, rel=2e-3)
