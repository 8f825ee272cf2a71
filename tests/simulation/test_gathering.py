"""The best places of collectives, against all places in tiny rows, and as a property of any rows."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import numpy as np
import pytest

from benchmarks.collectives import EQUAL, measured, table
from pipeplan.checking import check, check_memory
from pipeplan.costs import Costs, Limits, Memory, Settings
from pipeplan.model import COMPUTE_KINDS, Kind, Op, Placement, Schedule, among, from_ops
from pipeplan.passes import add_megatron_collectives, add_reduce_grad, add_unshard_reshard, without_collectives
from pipeplan.simulation import best_collectives, simulate
from pipeplan.strategies import strategy


def every_row(row: list[Op]) -> Iterator[list[Op]]:
    """Yield a row with its collectives in every way: stages are kept or freed in each gap, and gathered at any place.

    A stage that is freed is freed after its last use; collectives at one place are in any order of two.
    """
    choices = []
    for stage in sorted({op.stage for op in row}):
        uses = [place for place, op in enumerate(row) if op.stage == stage]
        gaps = [(a, b) for a, b in pairwise(uses) if b - a > 1]
        ways = []
        for freed in product((False, True), repeat=len(gaps)):
            starts = [(0, uses[0]), *((a + 1, b) for (a, b), gone in zip(gaps, freed, strict=True) if gone)]
            ends = [*(a for (a, _), gone in zip(gaps, freed, strict=True) if gone), uses[-1]]
            places = product(*(range(first, last + 1) for first, last in starts))
            later = range(uses[-1] + 1, len(row) + 1)
            ways += [(stage, before, ends, reduced) for before in places for reduced in later]
        choices.append(ways)
    for way in product(*choices):
        for turned in (False, True):
            inserted: list[tuple[int, int, Op]] = []
            for stage, gathers, ends, reduced in way:
                inserted += [(end + 1, 0, Op(Kind.RESHARD, stage)) for end in ends]
                inserted += [(before, 1 + int(turned), Op(Kind.UNSHARD, stage)) for before in gathers]
                inserted.append((reduced, 2 - int(turned), Op(Kind.REDUCE_GRAD, stage)))
            inserted.sort(key=lambda entry: entry[:2])
            yield [
                op
                for place in range(len(row) + 1)
                for op in [each for at, _, each in inserted if at == place] + row[place : place + 1]
            ]


def makespan(rows: Sequence[list[Op]], stages: int, costs: Costs) -> float:
    """When the last op ends: by turns, each rank runs what it can; a collective begins behind the one before it."""
    assert costs.unshard is not None
    assert costs.reduce is not None
    times = {Kind.F: costs.forward, Kind.B: costs.backward, Kind.UNSHARD: costs.unshard, Kind.REDUCE_GRAD: costs.reduce}
    ends: dict[tuple[Kind, int, int], float] = {}
    clock, stream, place = [0.0] * len(rows), [0.0] * len(rows), [0] * len(rows)
    gathered: dict[tuple[int, int], float] = {}
    while any(at < len(row) for at, row in zip(place, rows, strict=True)):
        for rank, row in enumerate(rows):
            while place[rank] < len(row):
                op = row[place[rank]]
                if op.kind in (Kind.F, Kind.B):
                    last = op.kind == Kind.B and op.stage == stages - 1
                    source = (Kind.F if last else op.kind, op.stage - (op.kind == Kind.F) + (op.kind == Kind.B) - last)
                    arrival = 0.0 if source == (Kind.F, -1) else ends.get((*source, op.microbatch))
                    if arrival is None:
                        break
                    clock[rank] = max(clock[rank], gathered[rank, op.stage], arrival) + float(times[op.kind][op.stage])
                    ends[op.kind, op.stage, op.microbatch] = clock[rank]
                elif op.kind in times:
                    stream[rank] = max(stream[rank], clock[rank]) + float(times[op.kind][op.stage])
                    if op.kind == Kind.UNSHARD:
                        gathered[rank, op.stage] = stream[rank]
                place[rank] += 1
    return max(*clock, *stream)


def least_makespan(schedule: Schedule, costs: Costs, limits: Limits) -> float:
    """The least makespan of all ways to place collectives in these rows, within the limits."""
    memory = costs.memory
    fitting = []
    for rank in range(schedule.ranks):
        ways = {tuple(map(str, row)): row for row in every_row(list(schedule[rank]))}
        fitting.append([row for row in ways.values() if peak(row, memory) <= limits.values[rank]])
    return min((makespan(rows, schedule.stages, costs) for rows in product(*fitting)), default=np.inf)


def peak(row: list[Op], memory: Memory) -> float:
    """The most that a rank holds, with gradients to the end of the row."""
    held, most = 0.0, 0.0
    reduced: set[int] = set()
    for op in row:
        if op.kind in (Kind.UNSHARD, Kind.RESHARD):
            held += (1 if op.kind == Kind.UNSHARD else -1) * float(memory.parameters[op.stage])
        elif op.kind == Kind.F:
            held += float(memory.activation[op.stage])
        elif op.kind == Kind.B:
            held += (op.stage not in reduced) * float(memory.gradients[op.stage])
            reduced.add(op.stage)
            most = max(most, held)
            held -= float(memory.activation[op.stage])
        most = max(most, held)
    return most


def drawn(random: np.random.Generator, schedule: Schedule, stages_held: float) -> tuple[Costs, Limits]:
    """Random costs of collectives, and limits that leave room for so many stages beside the activations."""
    stages = schedule.stages
    settings = Settings(
        forward_times=random.integers(1, 4, stages).astype(float).tolist(),
        unshard_times=random.integers(0, 5, stages).astype(float).tolist(),
        reduce_times=random.integers(0, 5, stages).astype(float).tolist(),
        activation_bytes=[1.0] * stages,
        parameter_bytes=random.integers(8, 13, stages).astype(float).tolist(),
        gradient_bytes=[1.0] * stages,
    )
    costs = settings.costs(schedule.placement)
    held = np.asarray(simulate(schedule, costs).memory.peak_bytes)
    return costs, Limits(held + 12.0 * stages_held, in_activations=False)


def test_optimal_in_tiny_rows() -> None:
    random = np.random.default_rng(5)
    one = Placement.loop(1, 3)
    for _ in range(3):
        order = [
            Op(kind, stage, 0) for kind in (Kind.F, Kind.B) for stage in (range(3) if kind == Kind.F else (2, 1, 0))
        ]
        schedule = Schedule.from_rows(one, 1, [from_ops(order)])
        costs, limits = drawn(random, schedule, float(random.integers(1, 4)))
        best = best_collectives(schedule, costs, limits=limits, evaluations=150)
        assert simulate(best, costs).timeline.makespan == least_makespan(schedule, costs, limits)
    found = strategy("interleaved-1f1b")
    schedule = found(found.shape(2, 2, 2))
    costs, limits = drawn(random, schedule, 1.0)
    best = best_collectives(schedule, costs, limits=limits, evaluations=150)
    assert simulate(best, costs).timeline.makespan == least_makespan(schedule, costs, limits)


def test_not_worse_than_the_rules_and_within_the_limit() -> None:
    random = np.random.default_rng(3)
    for name, ranks, microbatches, chunks in (
        ("interleaved-1f1b", 2, 4, 3),
        ("interleaved-1f1b-overlap", 2, 6, 3),
        ("zbv", 2, 4, 2),
        ("looped-bfs", 2, 3, 4),
        ("dualpipe", 2, 4, None),
        ("1f1b", 3, 4, 1),
    ):
        found = strategy(name)
        schedule = found(found.shape(ranks, microbatches, chunks))
        costs, limits = drawn(random, schedule, float(random.integers(1, 4)))
        rule = costs.memory.rule(schedule.placement, limits)
        starts = [add_megatron_collectives(schedule)]
        starts += [add_reduce_grad(add_unshard_reshard(schedule, max_active_stages=held)) for held in (1, 2, 3)]
        for communication in ("edge", "streams"):
            best = best_collectives(schedule, costs, limits=limits, communication=communication, evaluations=30)
            check(best).require_valid()
            compute = without_collectives(best)
            assert compute.keep(among(compute.columns.kind, COMPUTE_KINDS)) == schedule
            fits = [start for start in starts if not any(check_memory(start, rule))]
            if fits:
                assert not any(check_memory(best, rule))
            if communication == "edge":
                makespan = simulate(best, costs).timeline.makespan
                assert all(makespan <= simulate(start, costs).timeline.makespan for start in fits)
    again = best_collectives(schedule, costs, limits=limits, communication="streams", evaluations=30)
    assert again == best


@pytest.mark.slow
def test_sample_of_the_study() -> None:
    """No rule is better than the best places, and none is below the bounds; the table has a line for each rule."""
    measurements = [measured(number, seed=1, evaluations=80) for number in range(0, 60, 12)]
    for each in measurements:
        rules = [makespan for name, makespan in each.items() if name not in ("best", "rows alone", "bound")]
        assert all(makespan >= each["best"] * (1 - EQUAL) for makespan in rules)
        assert "best" not in each or each["best"] >= max(each["bound"], each["rows alone"]) * (1 - EQUAL)
    assert len(table(measurements)) == 11
