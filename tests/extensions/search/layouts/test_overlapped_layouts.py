"""Layouts whose overlapped pairs hide communication: against every layout, the bounds, and an instance that reverses."""

from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.costs import Layer, OpSegments, Overhead, Settings
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

DEEPSEEK_V3 = Path(__file__).parents[4] / "examples" / "layers" / "deepseek-v3.yaml"
CASES = {
    "1f1b-overlap": (Shape(ranks=3, microbatches=4), 6),
    "interleaved-1f1b-overlap": (Shape(ranks=2, microbatches=4, chunks=2), 6),
    "dualpipev": (Shape(ranks=3, microbatches=6, chunks=2), 8),
    "dualpipe": (Shape(ranks=4, microbatches=8), 7),
    "zbv": (Shape(ranks=2, microbatches=4, chunks=2), 6),
}
OPS = ("forward", "backward_input", "backward_weight")


def random_layer(random):
    """A layer that communicates between its computations, or one that only computes."""
    if random.random() < 0.2:
        forward, inputs, weights = random.integers(1, 5, 3).astype(float).tolist()
        return Layer(forward=forward, backward_input=inputs, backward_weight=weights)

    def segments(parts):
        made = [("compute", float(random.integers(0, 5)))] if random.random() < 0.7 else []
        for _ in range(parts):
            made += [("all_to_all", float(random.integers(0, 5))), ("compute", float(random.integers(0, 5)))]
        return (*made, ("compute", 1.0))

    parts = int(random.integers(1, 4))
    weights = tuple(("compute", float(random.integers(1, 3))) for _ in range(int(random.integers(1, 4))))
    own = OpSegments(forward=segments(parts), backward_input=segments(parts), backward_weight=weights)
    times: dict[str, Any] = {op: own.time(op) for op in OPS}
    return Layer(**times, segments=own)


def random_settings(random):
    """Layers, and how their pairs run."""
    layers = [random_layer(random) for _ in range(5)] + [random_layer(np.random.default_rng(1))]
    how: dict[str, Any] = {
        "pair_slowdown": float(random.choice([1.0, 1.2])),
        "delayed_weights": bool(random.random() < 0.5),
    }
    return layers, how


def laid(layer):
    option = LayerOption(name="", **{op: getattr(layer, op) for op in OPS}, segments=layer.segments)
    return LaidLayer(options=(option,), count=layer.count)


def layouts_of(layers, stages):
    for inner in combinations(range(1, layers), stages - 1):
        yield tuple(after - before for before, after in pairwise((0, *inner, layers)))


@pytest.mark.parametrize("fallback", [False, True], ids=["tables", "lanes"])
@pytest.mark.parametrize("name", CASES)
def test_of_every_layout_it_is_the_best_and_no_bound_is_above(name, fallback, monkeypatch):
    if fallback:  # as for layers that differ too much for tables of their pairs
        monkeypatch.setattr(pairs, "MOST_RUNS", 0)
        monkeypatch.setattr(pairs, "MOST_OWN", 0)
    shape, count = CASES[name]
    schedule = strategy(name)(shape)
    for seed in range(5):
        random = np.random.default_rng(seed)
        layers, how = random_settings(random)
        layers += [random_layer(random) for _ in range(count - len(layers))]
        between: dict[str, Any] = {
            "op_gap": float(random.choice([0, 0.1])),
            "message_time": float(random.choice([0, 0.05])),
        }
        settings = Settings(layers=layers, ranks=shape.ranks, chunks=shape.chunks, p2p_time=0.3, **between, **how)
        least = min(
            simulate(schedule, settings.replace(layers_per_stage=layout).costs(schedule.placement)).timeline.makespan
            for layout in layouts_of(count, schedule.stages)
        )
        found, stopped = (
            best_layout(
                [laid(layer) for layer in layers],
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
    random = np.random.default_rng(3)
    layers, how = random_settings(random)
    tables = StageTables(parts_of([laid(layer) for layer in layers]), (StageOption(name=""),))
    of_stages = pairs.StagePairs(tables, 3, slowdown=how["pair_slowdown"], delayed_weights=how["delayed_weights"])
    runs = np.unique(of_stages.runs[of_stages.runs >= 0])
    for kind in (WITH_FULL, WITH_INPUT):
        times = of_stages.times(kind, runs[:, None], runs)
        for first, second in random.choice(runs, (20, 2)).tolist():
            forward, backward = of_stages.separated(kind, (first, second), (runs, runs))
            assert (forward[runs][:, None] + backward[runs] <= times * (1 + 1e-12)).all()
            assert forward[first] + backward[second] == pytest.approx(float(times[first, second]))
            lane = of_stages.lane(kind, first, second)
            assert of_stages.lanes[first, lane[0]] + of_stages.lanes[second, lane[1]] <= times[first, second] + 1e-9
        assert of_stages.own(kind, runs)[runs] == pytest.approx(np.diag(times))
    assert (of_stages.own(ALONE, runs)[runs] <= of_stages.own(WITH_FULL, runs)[runs] * (1 + 1e-12)).all()


def test_without_overlapped_ops_segments_change_nothing():
    layers, _ = random_settings(np.random.default_rng(2))
    plain = [Layer(**{op: getattr(layer, op) for op in OPS}) for layer in layers]
    one, other = (
        best_layout([laid(layer) for layer in some], "1f1b", Shape(ranks=3, microbatches=4), seconds=20)
        for some in (layers, plain)
    )
    assert one == other


def problem_of(layers, placement, choices, how, layout):
    settings = Settings(layers=layers, ranks=placement.ranks, p2p_time=0.5, layers_per_stage=layout, **how)
    return Problem(placement, 4, settings.costs(placement), choices=choices)


PLACEMENTS = (Placement.linear(3), Placement.v(2), Placement.loop(2, 2), Placement.bidirectional(2))


@pytest.mark.parametrize("placement", PLACEMENTS, ids=lambda placement: placement.name)
@pytest.mark.parametrize("leave", [[], ["split"], ["overlap"]], ids=str)
def test_bounds_over_all_layouts_and_orders_are_not_above_any_schedule(placement, leave):
    choices = Choices.of([], leave) if leave else USUAL
    for seed in range(2):
        layers, how = random_settings(np.random.default_rng(seed))
        space = LayoutSpace(tuple(layers), partial(problem_of, layers, placement, choices, how), placement, None)
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
