"""Traces of PyTorch's own schedules with FSDP, recorded now by the installed version."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import pipeplan
from pipeplan.extensions.training.traces import read_run
from pipeplan.foundation.errors import FormatError
from pipeplan.model import Kind, crosses_ranks, dependencies
from pipeplan.simulation import compute_only
from tests.extensions.training.runtime.torch_schedules import from_torch
from tests.processes import run_ranks

PROCESSES = 4


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """A folder with those of every schedule, of two replicas of two pipeline ranks."""
    folder = tmp_path_factory.mktemp("traces")
    run_ranks("tests.extensions.training.runtime.profiled", PROCESSES, folder)
    return folder


@pytest.mark.parametrize(("name", "schedule"), [("gpipe", "GPipe"), ("zero-bubble", "InterleavedZeroBubble")])
def test_every_op_starts_when_what_it_needs_is_there(traces, name, schedule):
    run = read_run(traces / name)
    assert (run.steps, run.replicas, run.files) == (2, 2, 4)
    assert len(run.pauses) == 2
    chunks = 1 if name == "gpipe" else 2
    planned = from_torch(schedule, 2, 4, chunks=chunks)
    for timeline in map(compute_only, run.timelines):
        assert timeline.schedule == planned
        arrival = dependencies(planned).arrival
        crossing = np.flatnonzero(crosses_ranks(planned, arrival))
        assert (timeline.start[crossing] > timeline.end[arrival[crossing]]).all()


def test_the_first_stage_waits_for_a_gradient_and_does_nothing_with_it(traces):
    for timeline in read_run(traces / "zero-bubble").timelines:
        schedule = timeline.schedule
        durations = timeline.end - timeline.start
        inputs = schedule.columns.kind == Kind.I
        first = durations[inputs & (schedule.columns.stage == 0)]
        # The shortest of each: other work on the machine only makes an op longer.
        assert first.min() < durations[inputs & (schedule.columns.stage > 0)].min()


def test_costs_of_it_are_a_config_file(traces, tmp_path):
    pipeplan.profile(source=traces / "zero-bubble").save(tmp_path / "costs.yaml")
    assert pipeplan.simulate("interleaved-1f1b", config=tmp_path / "costs.yaml").schedule.stages == 4


def test_schedule_1f1b_marks_nothing(traces):
    with pytest.raises(
        FormatError, match=r"no annotated pipeline ops .*; mark every op with: .* or pass the schedule to"
    ):
        read_run(traces / "1f1b")
