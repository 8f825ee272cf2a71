"""Layouts whose overlapped pairs hide communication: against every layout, the bounds, and an instance that reverses."""

from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.costs import OPS, Layer, Overhead, Settings
from pipeplan.extensions.search import Effort, Problem, search
from pipeplan.extensions.search.choices import USUAL, Choices
from pipeplan.extensions.search.joint import LayoutSpace, joint_search
from pipeplan.extensions.search.joint.least import LeastBounds
from pipeplan.extensions.search.layouts import LaidLayer, LayerOption, best_layout, pairs
from pipeplan.extensions.search.layouts.order import ALONE, WITH_FULL, WITH_INPUT
from pipeplan.extensions.search.layouts.problem import bounds_of
from pipeplan.extensions.search.layouts.stages import StageOption, StageTables, parts_of
from pipeplan.model import Placement
from pipeplan.simulation import simulate
from pipeplan.strategies import Shape, strategy
from tests.costs.two_lanes import of_lists, random_op

DEEPSEEK_V3 = Path(__file__).parents[4] / "examples" / "layers" / "deepseek-v3.yaml"
CASES = [
    ("1f1b", Shape(ranks=3, microbatches=4), 6, 1),
    ("1f1b-overlap", Shape(ranks=3, microbatches=4), 6, 2),
    ("interleaved-1f1b-overlap", Shape(ranks=2, microbatches=4, chunks=2), 6, 1),
    ("dualpipev", Shape(ranks=3, microbatches=6, chunks=2), 8, 1),
    ("dualpipe", Shape(ranks=4, microbatches=8), 7, 1),
    ("zbv", Shape(ranks=2, microbatches=4, chunks=2), 6, 1),
]
"""Strategies, and numbers of layers and of their options; of two, the first only computes, and takes as long alone."""


def layer_of(*lists):
    segments = of_lists(*lists)
    times: dict[str, Any] = {op: segments.time(op) for op in OPS}
    return Layer(**times, segments=segments)


def random_layer(random):
    """A layer that communicates between its computations, or one that only computes."""
    layer = layer_of(*random_op(random, partial(random.randint, 1, 4), weights_talk=0.0))
    return layer if random.random() < 0.8 else replace(layer, segments=None)


def random_settings(random, count=6):
    """Layers, and how their pairs run."""
    layers = [random_layer(random) for _ in range(count - 1)] + [random_layer(Random(1))]
    how: dict[str, Any] = {"pair_slowdown": random.choice([1.0, 1.2]), "delayed_weights": random.random() < 0.5}
    return layers, how


def laid(*layers):
    """A layer with these options."""
    options = [
        LayerOption(name=str(number), **{op: getattr(layer, op) for op in OPS}, segments=layer.segments)
        for number, layer in enumerate(layers)
    ]
    return LaidLayer(options=tuple(options))


def layouts_of(layers, stages):
    for inner in combinations(range(1, layers), stages - 1):
        yield tuple(after - before for before, after in pairwise((0, *inner, layers)))


@pytest.mark.parametrize("fallback", [False, True], ids=["tables", "lanes"])
@pytest.mark.parametrize(("name", "shape", "count", "options"), CASES)
def test_of_every_layout_it_is_the_best_and_no_bound_is_above(name, shape, count, options, fallback, monkeypatch):
    if fallback:  # as for layers that differ too much for tables of their pairs
        monkeypatch.setattr(pairs, "MOST_RUNS", 0)
        monkeypatch.setattr(pairs, "MOST_OWN", 0)
    schedule = strategy(name)(shape)
    for seed in range(5):
        random = Random(seed)
        layers, how = random_settings(random, count)
        between: dict[str, Any] = {"op_gap": random.choice([0, 0.1]), "message_time": random.choice([0, 0.05])}
        computing = [layer_of(*([("compute", getattr(layer, op))] for op in OPS)) for layer in layers]
        ways = [computing, layers][-options:]
        settings = Settings(ranks=shape.ranks, chunks=shape.chunks, p2p_time=0.3, **between, **how)
        costs = (
            settings.replace(
                layers=[ways[way][layer] for layer, way in enumerate(np.repeat(of_stages, layout))],
                layers_per_stage=layout,
            ).costs(schedule.placement)
            for layout in layouts_of(count, schedule.stages)
            for of_stages in product(range(options), repeat=schedule.stages)
        )
        least = min(simulate(schedule, own).timeline.makespan for own in costs)
        found, stopped = (
            best_layout(
                [laid(*of_layer) for of_layer in zip(*ways, strict=True)],
                schedule,
                transfer=0.3,
                overhead=Overhead(**between),
                slowdown=how["pair_slowdown"],
                delayed_weights=how["delayed_weights"],
                seconds=seconds,
            )
            for seconds in (20, 0)
        )
        assert found.proven
        assert found.makespan == pytest.approx(least, rel=1e-9)
        assert stopped.lower_bound <= least * (1 + 1e-9)


def test_functions_of_one_stage_never_exceed_a_pair_and_meet_it_at_their_layout():
    layers, how = random_settings(Random(3))
    tables = StageTables(parts_of([laid(layer) for layer in layers]), (StageOption(name="0"),))
    of_stages = pairs.StagePairs(tables, 3, slowdown=how["pair_slowdown"], delayed_weights=how["delayed_weights"])
    runs = np.unique(of_stages.runs[of_stages.runs >= 0])
    for kind in (WITH_FULL, WITH_INPUT):
        times = of_stages.times(kind, runs[:, None], runs)
        for first, second in np.random.default_rng(3).choice(runs, (20, 2)).tolist():
            forward, backward = of_stages.separated(kind, (first, second), (runs, runs))
            assert (forward[runs][:, None] + backward[runs] <= times * (1 + 1e-12)).all()
            assert forward[first] + backward[second] == pytest.approx(float(times[first, second]))
            lane = of_stages.lane(kind, first, second)
            assert of_stages.lanes[first, lane[0]] + of_stages.lanes[second, lane[1]] <= times[first, second] + 1e-9
        assert of_stages.own(kind, runs)[runs] == pytest.approx(np.diag(times))
    assert (of_stages.own(ALONE, runs)[runs] <= of_stages.own(WITH_FULL, runs)[runs] * (1 + 1e-12)).all()


def problem_of(layers, placement, microbatches, p2p, choices, layout, **how):
    settings = Settings(layers=layers, ranks=placement.ranks, p2p_time=p2p, layers_per_stage=layout, **how)
    return Problem(placement, microbatches, settings.costs(placement), choices=choices)


PLACEMENTS = (Placement.linear(3), Placement.v(2), Placement.loop(2, 2), Placement.bidirectional(2))


@pytest.mark.parametrize("placement", PLACEMENTS, ids=lambda placement: placement.name)
@pytest.mark.parametrize("leave", [[], ["split"], ["overlap"]], ids=str)
def test_bounds_over_all_layouts_and_orders_are_not_above_any_schedule(placement, leave):
    choices = Choices.of([], leave) if leave else USUAL
    for seed in range(2):
        layers, how = random_settings(Random(seed))
        of_layout = partial(problem_of, layers, placement, 4, 0.5, choices, **how)
        space = LayoutSpace(tuple(layers), of_layout, placement, None)
        bounds, values = LeastBounds(space), []
        for layout in layouts_of(len(layers), placement.stages):
            problem = space.problem(layout)
            assert problem is not None
            values.append(search(problem, evaluations=60, seed=1).value)
            assert bounds.quick(bounds_of(layout)[None])[0] <= values[-1] * (1 + 1e-9)
        assert bounds.least.value <= min(values) * (1 + 1e-9)
        if seed == 0:
            found = joint_search([space], Effort(seconds=None, evaluations=1500)).result
            assert found.bound.value <= min(values) * (1 + 1e-9)
            assert found.value <= min(values) * 1.02


def test_communication_bounds_pairs_that_hide_all_computation():
    exchange = [("compute", 1), ("all_to_all", 4)]
    layers = [layer_of(exchange, exchange, [("compute", 1)])] * 6
    placement = Placement.loop(2, 2)
    space = LayoutSpace(tuple(layers), partial(problem_of, layers, placement, 16, 0.0, USUAL), placement, None)
    bounds = LeastBounds(space)
    assert bounds.least.value >= 16 * 3 * (4 + 4)
    assert bounds.quick(bounds_of((2, 1, 2, 1))[None])[0] >= 16 * 4 * (4 + 4)


def test_overlap_reverses_the_best_layout_of_deepseek_v3():
    """Without overlap, a layer with experts takes nearly twice as long as a dense one; with overlap, both take the same."""
    alone, overlapped = (
        pipeplan.search(config=DEEPSEEK_V3, placement="linear", layout="auto", leave=leave, evaluations=500, workers=1)
        for leave in ("split,overlap", "split")
    )
    assert max(found.makespan / found.lower_bound for found in (alone, overlapped)) < 1.02

    def seconds(schedule, found):
        layout = found.search.layers_per_stage
        return pipeplan.simulate(schedule, config=DEEPSEEK_V3, layers_per_stage=layout).makespan

    assert seconds("1f1b", overlapped) > 1.05 * alone.makespan
    assert seconds("1f1b-overlap", alone) > 1.05 * overlapped.makespan
