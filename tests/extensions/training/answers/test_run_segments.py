"""Segments from the kernels of a run: what a trace was made of is found, and its pairs take what they took."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.answers.simulating.result import Result
from pipeplan.costs import OPS, OpSegments, Segment
from pipeplan.extensions.training.answers.run_costs import RunCosts, read_run_costs, run_costs
from pipeplan.extensions.training.traces.activities import ALL_TO_ALL, COMPUTE
from pipeplan.extensions.training.traces.kineto import parse_rank
from pipeplan.extensions.training.traces.pieces import pieces_of, segments_of
from pipeplan.extensions.training.traces.traced_run import traced_run
from tests.extensions.training.traces.gpu_traces import DEEP_EP, KERNELS, Part, parts_of, trace_of_parts
from tests.extensions.training.traces.traces import rank_trace


def stage(first: float, *exchanges: float) -> OpSegments:
    """Segments of a stage: computations with all-to-alls between them, those of W with the ones of I."""
    forward: list[Segment] = [("compute", first)]
    for number, exchange in enumerate(exchanges):
        forward += [("all_to_all", exchange), ("compute", 1.0 + 0.25 * number)]
    inputs = tuple(forward[::-1])
    return OpSegments(forward=tuple(forward), backward_input=inputs, backward_weight=inputs[::2])


STAGES = (stage(2, 0.5, 0.4), stage(1, 0.6, 0.3, 0.7), stage(1.5, 0.8), stage(1.25, 0.5, 0.5))


def traced(run: Result, op: str = "", change: Callable[[list[Part]], list[Part]] = list, **options: Any) -> list[str]:
    """Traces of the ranks of a simulation on segments, in which the parts of one op are changed."""
    timeline, segments = run.timeline, run.costs.segments
    assert segments is not None
    parts = {
        position: change(own) if str(timeline.schedule.op(position)) == op else own
        for position, own in parts_of(timeline, segments).items()
    }
    return [trace_of_parts(timeline, rank, parts, **options) for rank in range(timeline.schedule.ranks)]


def write(folder: Path, traces: Iterable[str]) -> None:
    for rank, trace in enumerate(traces):
        (folder / f"{rank}.json").write_text(trace)


def costs_of(*made_of: Any, **options: Any) -> RunCosts:
    traces = traced(*made_of, **options)
    return run_costs(traced_run([parse_rank(f"rank{rank}", trace) for rank, trace in enumerate(traces)]), "run")


def simulated(name: str, **settings: Any) -> Result:
    shape: dict[str, Any] = {"ranks": 4, "microbatches": 8, "time_unit": "ms", "p2p_time": 0.5}
    return pipeplan.simulate(name, **shape | settings, segments=STAGES)


@pytest.mark.parametrize("kernels", [KERNELS, KERNELS | {"all_to_all": DEEP_EP, "compute": ("gemm", "elementwise")}])
@pytest.mark.parametrize(
    ("name", "delayed", "slowdown"),
    [("interleaved-1f1b-overlap", False, 1.25), ("dualpipev", False, None), ("dualpipev", True, None)],
)
def test_a_run_made_of_segments_gives_their_pair_times_back(tmp_path, name, delayed, slowdown, kernels):
    run = simulated(name, ranks=2, chunks=2, delayed_weights=delayed, pair_slowdown=slowdown)
    costs = costs_of(run, kernels=kernels)
    settings = costs.settings()
    assert settings.segments is not None
    for stages, op in product(zip(settings.segments, STAGES, strict=True), OPS):
        ours, theirs = (getattr(stage, op) for stage in stages)
        assert [name for name, _ in ours] == [name for name, _ in theirs]
        assert [time for _, time in ours] == pytest.approx([time for _, time in theirs], abs=0.003)
    assert (settings.overlap_times, settings.delayed_weights) == (None, delayed)
    assert settings.pair_slowdown == (slowdown and pytest.approx(slowdown, abs=3e-3))
    pipeplan.CostProfile.of(costs).save(tmp_path / "costs.yaml")
    again = pipeplan.simulate(name, config=tmp_path / "costs.yaml")
    pairs = run.timeline.schedule.joined
    taken, planned = ((of.end - of.start)[pairs] for of in (run.timeline, again.timeline))
    assert len(set(taken.round(3))) > 1
    np.testing.assert_allclose(planned, taken, rtol=2e-3)
    assert again.makespan == pytest.approx(run.makespan, rel=2e-3)


def test_an_op_with_other_communications_does_not_count_and_a_remark_says_so():
    run = simulated("1f1b")
    found = costs_of(run, "1F0", lambda parts: [parts[0], *parts[2:]]).segments
    assert found.remarks == ("segments of stage 1: 1 of 8 F have other communications and do not count",)
    assert found.settings()["segments"] == costs_of(run).segments.settings()["segments"]


def test_communication_behind_computation_is_no_segment():
    """Half of an all-to-all runs beside the computation before it: the other half is what the op waits for."""
    lanes = np.array([COMPUTE, ALL_TO_ALL, COMPUTE])
    pieces = pieces_of(0, 100, np.array([[0, 30, 52], [40, 50, 100.0]]), lanes)
    assert (pieces.exposed, pieces.times.tolist()) == (10, [[40, 0, 10], [48, 2, 0]])
    assert segments_of([pieces], 10)[0] == (("compute", 4.0), ("all_to_all", 1.0), ("compute", 5.0))
    hidden = pieces_of(0, 100, np.array([[0, 30, 54], [51, 50, 100.0]]), lanes)
    assert segments_of([hidden], 10)[0] == (("compute", 10.0),)


def test_without_kernels_of_a_rank_there_are_no_segments_and_a_remark_says_so(tmp_path):
    run = simulated("1f1b")
    write(tmp_path, [*traced(run)[:3], rank_trace(run.timeline, 3)])
    costs = read_run_costs(tmp_path)
    assert costs.segments.remarks == (
        "no segments: no trace has the kernels of a forward and a backward of stage 3 alone",
    )
    assert costs.settings().segments is None
    result = pipeplan.diff("1f1b", tmp_path, segments=STAGES, time_unit="ms")
    assert [rank.exposed_measured is None for rank in result.ranks] == [False, False, False, True]
    assert "the trace of rank 3 shows no kernels" in " ".join(result.sentences)


def longer_exchange(parts: list[Part]) -> list[Part]:
    """The parts with 0.3 ms more for the first all-to-all, which delays the later ones."""
    first = next(part for part in parts if part[0] == "all_to_all")
    return [(lane, begin + 0.3 * (begin > first[1]), end + 0.3 * (end >= first[2])) for lane, begin, end in parts]


def test_diff_finds_the_exposed_communication_of_every_rank(tmp_path):
    write(tmp_path, traced(simulated("1f1b-overlap"), "0B7", longer_exchange))
    result = pipeplan.diff("1f1b-overlap", tmp_path, segments=STAGES, time_unit="ms", p2p_time=0.5)
    planned, measured = (
        [getattr(rank, side) for rank in result.ranks] for side in ("exposed_planned", "exposed_measured")
    )
    assert np.subtract(measured, planned) == pytest.approx([0.3, 0, 0, 0])
    assert (result.planned_exposed, result.measured_exposed) == pytest.approx((sum(planned), sum(measured)))
    assert any(sentence.startswith("Communication exposed in the ops of all ranks") for sentence in result.sentences)


def test_what_is_not_known_of_exposed_communication_is_said(tmp_path, capsys):
    run = simulated("1f1b")
    bare = replace(run.timeline, source="measured")
    result = pipeplan.diff("1f1b", bare, segments=STAGES, time_unit="ms")
    assert (result.measured_exposed, result.ranks[0].exposed_measured) == (None, None)
    result.print()
    assert "that of the run is not known, because it shows no kernels" in " ".join(capsys.readouterr().out.split())
    write(tmp_path, traced(run))
    result = pipeplan.diff("1f1b", tmp_path, forward_times=1, time_unit="ms")
    assert (result.planned_exposed, result.ranks[0].exposed_planned) == (None, None)
    assert "that of the plan is not known" in " ".join(result.sentences)
    result = pipeplan.diff("1f1b", bare, forward_times=1, time_unit="ms")
    assert not {"planned_exposed", "measured_exposed"} & set(result.to_dict())
    assert "exposed" not in " ".join(result.sentences)
