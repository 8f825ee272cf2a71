"""Traces of Megatron-core's runs with its ops marked as the example marks them: the order, times and costs are read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.extensions.training.traces import read_run
from pipeplan.model import crosses_ranks, dependencies
from tests.peers.megatron.run import Case
from tests.peers.megatron.traced import Traced
from tests.processes import run_ranks

SHAPES: dict[str, dict[str, Any]] = {
    "1f1b": {"ranks": 2, "microbatches": 4},
    "interleaved-1f1b": {"ranks": 2, "microbatches": 4, "chunks": 2},
}


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the traces of each."""
    folder = tmp_path_factory.mktemp("traces")
    cases = tuple(Case(name, pipeplan.export(name, to="megatron", **shape).text) for name, shape in SHAPES.items())
    run_ranks("tests.peers.megatron.traced", 2, Traced(cases, str(folder)))
    return folder


@pytest.mark.parametrize("name", SHAPES)
def test_marked_ops_are_read(name: str, traces: Path) -> None:
    run = read_run(traces / name)
    planned = pipeplan.simulate(name, **SHAPES[name]).timeline.schedule
    assert (run.steps, run.replicas, len(run.pauses)) == (2, 1, 1)
    arrival = dependencies(planned).arrival
    crossing = np.flatnonzero(crosses_ranks(planned, arrival))
    for timeline in run.timelines:
        assert timeline.schedule == planned
        assert (timeline.start[crossing] > timeline.end[arrival[crossing]]).all()
    profile = pipeplan.profile(source=traces / name)
    assert profile.settings().step_time is not None
