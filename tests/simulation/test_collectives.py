"""Sharded stages: collectives on a stream of their own, and the memory of parameters and gradients."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.answers.simulating.result import view_of_result
from pipeplan.checking import check_memory, check_times
from pipeplan.costs import Communication, Costs, Limits, Overhead, Settings, settings_of
from pipeplan.formats.costs_record import costs_json, parse_costs_json
from pipeplan.foundation.errors import InvalidScheduleError
from pipeplan.model import NOT_GIVEN, Kind, Placement, Reason, Schedule, memory_moments, parse_schedule
from pipeplan.passes import insert_communication, insert_offload, insert_recompute, lower_for_torch, split_backward
from pipeplan.simulation import (
    critical_path,
    idle_times,
    memory_use,
    simulate,
    what_ifs,
)
from pipeplan.strategies import STRATEGIES
from tests.sharded_schedules import sharded
from tests.simulation.op_times import times
from tests.slow_collectives import Events, sharded_levels, slow_peaks

INTERLEAVED = STRATEGIES["interleaved-1f1b"]

LEVELS: tuple[Communication, ...] = ("edge", "contended", "streams", "blocking")


def random_case(random: Random, communication: Communication) -> tuple[Schedule, Costs]:
    """A strategy's schedule with collectives in random places, and costs of everything that takes time."""
    strategy = STRATEGIES[random.choice(sorted(STRATEGIES))]
    ranks = random.choice((2, 4))
    schedule = strategy(strategy.shape(ranks, ranks * random.randint(2, 3)))
    changes = [lambda made: made, split_backward, insert_recompute, insert_offload]
    if schedule.kinds <= {Kind.F, Kind.B} and not schedule.joined.any():
        schedule = random.choice(changes)(schedule)
    if communication in ("streams", "blocking"):
        schedule = insert_communication(schedule)
    schedule = sharded(schedule, random)
    stages = schedule.stages
    options: dict[str, Any] = {
        name: [random.choice((0.25, 0.5, 1.0, 1.5)) for _ in range(stages)]
        for name in ("forward_times", "backward_input_times", "backward_weight_times", "offload_times")
    }
    options |= {
        name: [random.choice((0.0, 0.125, 0.5, 2.0, 4.0)) for _ in range(stages)]
        for name in ("unshard_times", "reduce_times", "parameter_bytes", "gradient_bytes")
    }
    if random.random() < 0.3:
        options["microbatch_factors"] = [random.choice((0.5, 1.0, 2.0)) for _ in range(schedule.microbatches)]
    if random.random() < 0.3:
        options |= {"op_gap": 0.125, "message_time": 0.0625}
    options |= {"p2p_time": random.choice((0.0, 0.25)), "p2p_bytes": 1.0, "p2p_bandwidth": 4.0}
    return schedule, Settings(activation_bytes=8.0, **options).costs(schedule.placement)


def differences(cases: int, seed: int = 0) -> int:
    """Return the number of random cases in which the simulator and the slow one differ."""
    random, different = Random(seed), 0
    for case in range(cases):
        communication = LEVELS[case % len(LEVELS)]
        schedule, costs = random_case(random, communication)
        timeline = simulate(schedule, costs, communication=communication).timeline
        slow = Events(schedule, costs, communication).timeline()
        beside = schedule.where(Kind.SEND_F, Kind.RECV_F, Kind.SEND_B, Kind.RECV_B)
        different += not (np.allclose(timeline.start, slow.start) and np.allclose(timeline.end, slow.end))
        assert communication in ("streams", "blocking") or not beside.size
    return different


def test_the_simulator_agrees_with_an_obvious_slow_one():
    assert differences(80) == 0


def test_an_op_without_its_parameters_is_an_error():
    text = "0UNSHARD 0F0 0RESHARD 0F1 0B1 0B0"
    with pytest.raises(
        InvalidScheduleError, match=r"not gathered: rank 0, op 3 \(0F1\) computes without the parameters"
    ):
        times(text, unshard_times=1.0)
    assert times(text)["0F1"] == (1, 2)


def test_memory_is_held_between_the_ops_that_gather_and_free_it():
    random = Random(3)
    for _ in range(20):
        schedule, costs = random_case(random, "edge")
        held = memory_use(schedule, costs)
        without = replace(costs.memory, parameters=NOT_GIVEN, gradients=NOT_GIVEN)
        bare = memory_use(schedule, replace(costs, memory=without))
        levels = np.array([level for row in sharded_levels(schedule, costs) for level in row])
        peak = held.peak_bytes
        assert bare.peak_parameters is None
        assert held.bytes is not None
        assert bare.bytes is not None
        assert peak is not None
        assert np.allclose(held.bytes, bare.bytes + levels.sum(axis=1))
        assert held.parameters is None or np.allclose(held.parameters, levels[:, 0])
        assert held.parameters is not None or not levels[:, 0].any()
        assert np.array_equal(held.activations, bare.activations)
        assert np.allclose(peak - held.static, slow_peaks(schedule, costs))
        # The checker counts for itself: the peak is a limit that the schedule keeps, and less is not.
        for less, problems in ((0.0, False), (0.01, True)):
            rule = costs.memory.rule(schedule.placement, Limits(peak - less, in_activations=False))
            assert any(check_memory(schedule, rule)) == problems


def test_gradients_are_held_from_the_start_of_the_first_backward():
    settings: dict[str, Any] = {"ranks": 2, "microbatches": 4, "activation_bytes": 10.0, "gradient_bytes": 8.0}
    for name, peak in (("gpipe", 48), ("1f1b", 28), ("zb-h1", 28)):
        for limit, fits in ((peak, True), (peak - 0.5, False)):
            result = pipeplan.simulate(name, memory_limit=limit, **settings)
            assert (np.max(result.peak_bytes or []), result.fits) == (peak, fits), name
            verdict = pipeplan.check(result.schedule, memory_limit=limit, activation_bytes=10.0, gradient_bytes=8.0)
            assert verdict.valid == fits, name
    # B0 runs from 1 to 3: it holds its activation and the gradients, and frees the former at its end.
    alone = pipeplan.simulate("1f1b", ranks=1, microbatches=1, activation_bytes=10.0, gradient_bytes=8.0)
    curves = view_of_result(alone).memory
    assert curves is not None
    assert list(zip(curves.time.tolist(), curves.level.tolist(), strict=True)) == [(0, 10), (1, 18), (3, 8)]


def test_parameters_are_held_when_the_rank_comes_to_their_unshard():
    text = "0UNSHARD 0F0 1UNSHARD 0RESHARD 1F0 1B0 1RESHARD 1REDUCE_GRAD 0UNSHARD 0B0 0RESHARD 1WAIT_REDUCE_GRAD"
    schedule = parse_schedule(text)
    costs = Settings(unshard_times=[0.5, 3.0], reduce_times=2.0).costs(schedule.placement)
    timeline = simulate(schedule, costs).timeline
    assert timeline.start.tolist() == [0, 0.5, 1, 1, 4, 4.5, 5.5, 5.5, 6.5, 7, 8, 8]
    assert memory_moments(timeline).tolist() == [0, 0.5, 1, 1, 4, 5.5, 5.5, 5.5, 5.5, 8, 8, 8]


def test_collectives_of_the_next_step_begin_as_late_as_they_can_in_a_span():
    random, later = Random(11), 0
    for _ in range(40):
        schedule, costs = random_case(random, "edge")
        costs = replace(costs, overhead=Overhead())
        timeline = simulate(schedule, costs).timeline
        if not costs.times_collectives(schedule):
            continue
        begins = np.maximum(timeline.last_end - timeline.spans, 0.0)
        # Collectives that begin so late delay no other op; a moment later, they do, or the rank's first op is too late.
        for more in (0.0, 0.01):
            run = Events(schedule, costs, "edge", tuple((begins + more).tolist())).run()
            same = []
            for rank, row in enumerate(schedule):
                ahead = next(place for place, op in enumerate(row) if op.kind not in (Kind.UNSHARD, Kind.RESHARD))
                rest = [run.ended[rank, place] for place in range(ahead, len(row))]
                same += [np.allclose(rest, timeline.end[schedule.offsets[rank] + ahead : schedule.offsets[rank + 1]])]
            assert all(same) == (more == 0.0)
            later += int((begins > 0).sum())
    assert later > 20


def test_no_schedule_is_shorter_than_its_bound():
    random, gaps = Random(17), []
    for case in range(40):
        communication = LEVELS[case % len(LEVELS)]
        schedule, costs = random_case(random, communication)
        peak = memory_use(schedule, costs).peak_bytes
        assert peak is not None
        run = simulate(schedule, costs, communication=communication, limits=Limits(peak, in_activations=False))
        bare = replace(run, costs=replace(run.costs, unshard=None, reduce=None)).bound.value
        assert bare <= run.bound.value <= run.timeline.makespan * (1 + 1e-9)
        gaps.append(run.bound.value - bare)
    assert np.median(gaps) > 0
    text = "0UNSHARD 0F0 0B0 0RESHARD 0REDUCE_GRAD"
    schedule = parse_schedule(text)
    tight = simulate(schedule, Settings(unshard_times=0.5, reduce_times=0.25).costs(schedule.placement))
    assert tight.bound.value == tight.timeline.makespan == 3.75
    assert tight.bound.reason.endswith("behind the first UNSHARD, before a REDUCE_GRAD")
    busy = simulate(schedule, Settings(unshard_times=9.0, reduce_times=1.0).costs(schedule.placement))
    assert busy.bound.value == 13.0


def test_every_idle_moment_has_a_reason():
    random = Random(23)
    result: set[int] = set()
    for case in range(28):
        communication = LEVELS[case % len(LEVELS)]
        schedule, costs = random_case(random, communication)
        run = simulate(schedule, costs, communication=communication)
        idle = idle_times(run.timeline, run.costs)
        totals = idle.totals(schedule.ranks)
        assert np.allclose(totals.sum(axis=1), run.timeline.idle)
        by_piece = np.zeros_like(totals)
        np.add.at(by_piece, (idle.pieces.rank, idle.pieces.reason), idle.pieces.end - idle.pieces.start)
        assert np.allclose(by_piece, totals)
        result |= {*np.flatnonzero(totals.sum(axis=0)).tolist()}
        path = critical_path(run.timeline, run.costs)
        spent = sum(path.by_kind.values()) + path.overhead + path.transfer
        assert spent == pytest.approx(run.timeline.makespan)
    assert {Reason.UNSHARD, Reason.REDUCE} <= result


def test_a_rank_waits_for_its_parameters_and_at_the_end_for_its_gradients():
    text = "0UNSHARD 0F0 0RESHARD 0UNSHARD 0B0 0RESHARD 0REDUCE_GRAD\n"
    text += "1UNSHARD 1F0 1B0 1RESHARD 1REDUCE_GRAD 1WAIT_REDUCE_GRAD"
    schedule = parse_schedule(text)
    costs = Settings(unshard_times=[0.5, 4.0], reduce_times=[3.0, 1.0]).costs(schedule.placement)
    timeline = simulate(schedule, costs).timeline
    totals = idle_times(timeline, costs).totals(2)
    # Rank 1 gathers until 4, and reduces from 7 to 8. Rank 0 computes from 7 to 9, and reduces until 12.
    rank_0 = {Reason.UNSHARD: 0.5 + 2.5, Reason.COMPUTE: 3.0, Reason.REDUCE: 3.0}
    rank_1 = {Reason.START_UP: 1.0, Reason.UNSHARD: 3.0, Reason.REDUCE: 1.0, Reason.DRAIN: 4.0}
    for row, expected in zip(totals, (rank_0, rank_1), strict=True):
        assert {Reason(code): row[code] for code in np.flatnonzero(row).tolist()} == expected
    path = critical_path(timeline, costs)
    assert path.by_kind == {"F": 1.0, "B": 4.0, "UNSHARD": 4.0, "REDUCE_GRAD": 3.0}
    assert [what.change for what in what_ifs(simulate(schedule, costs))] == ["collectives free"]


def test_a_timeline_with_an_op_before_its_parameters_is_wrong():
    schedule = lower_for_torch(INTERLEAVED(INTERLEAVED.shape(2, 4)))
    timeline = simulate(schedule, Settings(unshard_times=1.0).costs(schedule.placement)).timeline
    assert not [*check_times(timeline)]
    late = timeline.end.copy()
    late[schedule.where(Kind.UNSHARD)] += 1.0
    messages = [finding.message for finding in check_times(replace(timeline, end=late))]
    assert any("UNSHARD, which it waits for" in message for message in messages)
    assert any("the collective ahead of it" in message for message in messages)


def test_costs_files_keep_collectives():
    placement = Placement.linear(2)
    costs = Settings(
        unshard_times=[1.0, 2.0],
        reduce_times=0.5,
        parameter_bytes=[3.0, 4.0],
        gradient_bytes="1KiB",
        activation_bytes=1.0,
    ).costs(placement)
    for again in (parse_costs_json(costs_json(costs)), Settings(**settings_of(costs)).costs(placement)):
        assert again.unshard is not None
        assert again.reduce is not None
        assert again.unshard.tolist() == [1.0, 2.0]
        assert again.reduce.tolist() == [0.5, 0.5]
        assert again.memory.parameters.tolist() == [3.0, 4.0]
        assert again.memory.gradients.tolist() == [1024.0, 1024.0]
