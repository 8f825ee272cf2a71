"""Marks become times: with a clock that counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import pipeplan
from pipeplan.extensions.training.runtime.progress import Phase, Places
from pipeplan.extensions.training.runtime.recording import (
    OpTimes,
    Recorder,
    Recording,
    measured_timeline,
    step_nanoseconds,
)
from pipeplan.extensions.training.traces import read_run
from pipeplan.formats import read_file
from pipeplan.model import HOST_KINDS, Kind, parse_schedule


class Clock:
    """A clock that shows what it is told to."""

    def __init__(self, *times: int) -> None:
        self.shown = iter(times)

    def restart(self) -> None:
        pass

    def mark(self) -> int:
        return next(self.shown)

    def times(self, marks: Sequence[int]) -> np.ndarray:
        return np.array(marks, np.int64)


def test_ops_and_pairs() -> None:
    plan = parse_schedule("0F0 0SEND_F0 (0F1;0B0)OVERLAP_F_B 0B1 0REDUCE_GRAD")
    clock = Clock(10, 12, 20, 21, 25, 25, 30, 33, 40, 42, 43, 50, 51, 52)
    places = Places(1)
    recorder = Recorder(plan, 0, clock, places)
    recorder.recording = True
    recorder.begin_step()
    recorder.turn(0)
    recorder.op_started()
    recorder.op_ended()
    recorder.turn(1)
    recorder.turn(2)
    recorder.op_started()
    recorder.op_ended()
    recorder.op_started()
    recorder.op_ended()
    assert places.of(0).phase == Phase.COMPUTING
    assert places.of(0).position == 2
    recorder.turn(3)
    recorder.op_started()
    recorder.op_ended()
    recorder.turn(4)
    recorder.turn(5)
    times = recorder.times(100)
    assert times.start.tolist() == [112, 121, 125, 125, 143, 151]
    assert times.end.tolist() == [120, 125, 140, 140, 150, 152]
    assert times.wait.tolist() == [2, 0, 0, 3, 1, 0]


def test_a_loss_counts_into_its_forward() -> None:
    plan = parse_schedule("0F0 0B0")
    recorder = Recorder(plan, 0, Clock(0, 1, 5, 8, 9, 10, 20, 21), Places(1))
    recorder.recording = True
    recorder.begin_step()
    recorder.turn(0)
    recorder.op_started()
    recorder.op_ended()
    recorder.op_ended()
    recorder.turn(1)
    recorder.op_started()
    recorder.op_ended()
    recorder.turn(2)
    times = recorder.times(0)
    assert times.end.tolist() == [8, 20]


def test_a_receive_ends_where_its_op_found_it() -> None:
    plan = parse_schedule("0F0 0SEND_F0 0B0\n1RECV_F0 1F0 1B0", microbatches=1)
    first = OpTimes(*(np.array(column, np.int64) for column in ([100, 200, 300], [200, 210, 400], [0, 0, 0])))
    second = OpTimes(*(np.array(column, np.int64) for column in ([110, 230, 290], [111, 290, 350], [0, 119, 0])))
    timeline, wait = measured_timeline(plan, [first, second])
    assert timeline.start.tolist() == pytest.approx([0, 1e-4, 2e-4, 1e-5, 1.3e-4, 1.9e-4])
    assert timeline.end[3] == timeline.start[4]
    assert wait.tolist() == pytest.approx([0, 0, 0, 0, 1.19e-4, 0])
    assert step_nanoseconds([first, second]) == 300


def test_a_recording_is_saved_with_all_its_steps(tmp_path: Path) -> None:
    """The third step is of median length; on one clock, steps follow each other after 1 and 2 ms."""
    plan = parse_schedule("0F0 0B0\n1F0 1B0", microbatches=1)

    def step(begin: int, length: int) -> list[OpTimes]:
        moments = np.array([[0, 3], [1, 2]]) * length + begin
        return [OpTimes(row * 10**6, (row + length) * 10**6, np.zeros(2, np.int64)) for row in moments]

    steps = [step(1000, 10), step(1041, 30), step(1163, 20)]
    recording = Recording(plan, first_rank=True)
    recording.fill([[times[rank] for times in steps] for rank in range(2)])
    recording.save(tmp_path / "run.json")
    assert recording.timeline.makespan == 80.0
    assert read_file(tmp_path / "run.json").makespan == 80.0  # type: ignore[union-attr]
    run = read_run(tmp_path / "run.json")
    assert [timeline.makespan for timeline in run.timelines] == [40.0, 120.0, 80.0]
    assert run.pauses == (1.0, 2.0)
    costs: Any = pipeplan.profile(source=tmp_path / "run.json").measured.stages[0]
    assert (costs["F"].median, costs["F"].count) == (20.0, 3)
    assert costs["F"].low < 20.0 < costs["F"].high


def test_places_are_told_in_the_notation() -> None:
    plan = parse_schedule("0F0 (0F1;0B0)OVERLAP_F_B 0B1")
    places = Places(1)
    places.tell(0, 4, 1, Phase.COMPUTING)
    assert places.of(0).describe(plan, 0) == "rank 0, step 4, op 1 ((0F1;0B0)OVERLAP_F_B), computing"
    places.tell(0, 4, 0, Phase.WAITING)
    assert "op 0 (0F0), waiting" in places.of(0).describe(plan, 0)
    places.tell(0, 4, 3, Phase.BETWEEN_STEPS)
    assert places.of(0).describe(plan, 0) == "rank 0, at the end of step 4"


def test_a_recomputation_is_compute_and_a_copy_has_times_of_its_own() -> None:
    plan = parse_schedule("0F0 0OFFLOAD0 0F1 0RELOAD0 0B0 0R1 0B1")
    recorder = Recorder(plan, 0, Clock(0, 1, 5, 6, 9, 10, 20, 21, 22, 25, 30, 31, 32, 40, 41, 42, 50, 51), Places(1))
    recorder.recording = True
    recorder.begin_step()
    for position, kind in enumerate(op.kind for op in plan[0]):
        recorder.turn(position)
        if kind in HOST_KINDS:
            recorder.copied(kind, 0, 0, Done((5, 8) if kind == Kind.OFFLOAD else (21, 24)))
        else:
            recorder.op_started()
            recorder.op_ended()
    recorder.turn(len(plan))
    times = recorder.times(100)
    assert times.start.tolist() == [101, 105, 110, 121, 125, 132, 142]
    assert times.end.tolist() == [105, 108, 120, 124, 130, 140, 150]
    assert times.wait.tolist() == [1, 3, 1, 0, 3, 1, 1]


@dataclass
class Done:
    """A copy that has its marks."""

    times: tuple[int, int]

    def wait(self) -> None:
        pass

    def marks(self) -> tuple[int, int]:
        return self.times
