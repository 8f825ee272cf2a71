"""How far a run is, from where its ranks say they are."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: runs are not tested")

from pipeplan.extensions.training.options import ProfileOptions, RunOptions
from pipeplan.extensions.training.runtime.profiling import ProfileTask
from pipeplan.extensions.training.runtime.progress import HowFar, Phase, RankPlace, RunProgress, Watcher
from pipeplan.extensions.training.runtime.running import RunTask
from pipeplan.model import Placement, parse_schedule

PLAN = parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1")
RUN = RunTask(schedule=PLAN, options=RunOptions(steps=3))
PROFILE = ProfileTask(placement=Placement.loop(2, 2), trial=PLAN, options=ProfileOptions(repeats=4, warmup=1))


def at(step: int, position: int, phase: Phase = Phase.COMPUTING) -> RankPlace:
    return RankPlace(0, step, position, phase)


def test_steps_count_from_the_warm_up_on_and_by_the_ops_of_each_rank():
    assert RUN.how_far([at(0, 0, Phase.STARTING), at(0, 2)]) == HowFar("starting up", 1, 1, 0.0, 4)
    assert RUN.how_far([at(0, 2), at(0, 1)]) == HowFar("warm-up", 1, 1, 0.375, 4)
    assert RUN.how_far([at(0, 3, Phase.BETWEEN_STEPS), at(1, 2)]) == HowFar("step", 1, 3, 1.25, 4)
    assert RUN.how_far([at(3, 3, Phase.BETWEEN_STEPS)] * 2) == HowFar("step", 3, 3, 4.0, 4)
    assert RUN.how_far([at(0, 0, Phase.DONE)] * 2) == HowFar("step", 3, 3, 4.0, 4)


def test_a_profile_counts_rounds_then_the_steps_of_its_trial():
    """Two stages a rank, five rounds each; four steps behind them."""
    assert PROFILE.how_far([at(-1, 6), at(-1, 7)]) == HowFar("round", 7, 10, 6, 14)
    assert PROFILE.how_far([at(0, 2), at(-1, 9)]) == HowFar("round", 10, 10, 9, 14)
    assert PROFILE.how_far([at(1, 2), at(1, 2)]) == HowFar("trial step", 2, 4, 11.5, 14)
    assert "measuring its stage number 1" in PROFILE.describe(0, at(-1, 7))


def test_reports_come_twice_a_second_with_the_pace_and_what_is_left():
    start = HowFar("starting up", 1, 1, 0.0, 4)
    message: dict[str, Any] = {"now": 0.0, "far": start}
    reports: list[RunProgress] = []
    watch = Watcher(reports.append, lambda places: message["far"], clock=lambda: message["now"])
    for now, far in (
        (0.0, start),
        (0.3, start),
        (10.0, HowFar("warm-up", 1, 1, 0.0, 4)),
        (10.4, HowFar("warm-up", 1, 1, 0.9, 4)),
        (14.0, HowFar("step", 1, 3, 2.0, 4)),
    ):
        message.update(now=now, far=far)
        watch([])
    assert [str(report) for report in reports] == ["starting up", "warm-up 1 of 1", "step 1 of 3, about 2 s each"]
    assert [report.share for report in reports] == [0, 0, 0.5]
    assert [report.seconds_left for report in reports] == [None, None, 4.0]
