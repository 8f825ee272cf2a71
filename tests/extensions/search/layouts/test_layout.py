"""The layout search against the simulator, against every layout there is, and against even splits."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.costs import Costs, Memory, Overhead, Transfer
from pipeplan.extensions.search.layouts import BestLayout, LaidLayer, LayerOption, StageOption, best_layout
from pipeplan.foundation.errors import CostError, InfeasibleError, InputError, ShapeError
from pipeplan.model import Kind
from pipeplan.simulation import memory_use, simulate
from pipeplan.strategies import Shape, strategy

GIB = 2.0**30
SHAPES = {
    "1f1b": Shape(ranks=3, microbatches=5),
    "gpipe": Shape(ranks=3, microbatches=4),
    "interleaved-1f1b": Shape(ranks=2, microbatches=4, chunks=2),
    "interleaved-1f1b-overlap": Shape(ranks=2, microbatches=6, chunks=2),
    "zb-h1": Shape(ranks=3, microbatches=5),
    "zbv": Shape(ranks=2, microbatches=4, chunks=2),
    "dualpipev": Shape(ranks=2, microbatches=6, chunks=2),
    "dualpipe": Shape(ranks=4, microbatches=8),
    "seq1f1b": Shape(ranks=3, microbatches=4, slices=2),
}


def layer(forward=1.0, inputs=1.0, weights=1.0, held=1.0, *, kind="dense", count=1, static=0.0, more=()):
    first = LayerOption(
        name="none",
        forward=forward,
        backward_input=inputs,
        backward_weight=weights,
        activation_bytes=held * GIB,
        weight_activation_bytes=held * GIB / 2,
    )
    return LaidLayer(options=(first, *more), kind=kind, count=count, static_bytes=static * GIB)


def full(forward=1.0, inputs=2.0, weights=1.0, held=0.1):
    return LayerOption(
        name="full",
        forward=forward,
        backward_input=inputs,
        backward_weight=weights,
        activation_bytes=held * GIB,
        weight_activation_bytes=held * GIB,
    )


LAYER = LayerOption(name="none", forward=1.0, backward_input=1.0, backward_weight=1.0)
EMBEDDING = layer(0.1, 0.05, 0.1, 0.1, kind="embedding", static=0.5)
HEAD = layer(1.3, 1.2, 1.1, 0.3, kind="head", static=0.5)


def on_stages(layers, counts, options):
    """Layers of each stage with what they do, embedding and head on the ends."""
    single = [each for each in layers for _ in range(each.count)]
    middle = [each for each in single if each.kind not in ("embedding", "head")]
    stages, at = [], 0
    for count, option in zip(counts, options, strict=True):
        own = middle[at : at + count]
        some = len(own) if option.layers is None else option.layers
        stages.append([(each, each.option(option.name if i < some else "none")) for i, each in enumerate(own)])
        at += count
    ends = [
        (0, [each for each in single if each.kind == "embedding"]),
        (-1, [each for each in single if each.kind == "head"]),
    ]
    for stage, bound in ends:
        stages[stage] += [(each, each.options[0]) for each in bound]
    return stages


def until_weight(option):
    """The bytes that an option keeps until W."""
    return option.activation_bytes if option.weight_activation_bytes is None else option.weight_activation_bytes


def costs_of(layers, counts, options, transfer=0.0, overhead=None, bandwidth=np.inf):
    stages = on_stages(layers, counts, options)

    def total(name):
        return np.array([sum(getattr(option, name) for _, option in stage) for stage in stages], np.float64)

    moved = total("transfer_bytes") / bandwidth
    forward, inputs = np.maximum(total("forward"), moved), np.maximum(total("backward_input"), moved)
    weights = total("backward_weight")
    freed = np.array([sum(until_weight(option) for _, option in stage) for stage in stages], np.float64)
    static = np.array([sum(each.static_bytes for each, _ in stage) for stage in stages])
    return Costs(
        forward=forward,
        backward=inputs + weights,
        backward_input=inputs,
        backward_weight=weights,
        recompute=forward,
        memory=Memory(total("activation_bytes"), freed, static, in_bytes=True),
        transfer=Transfer(latency=transfer),
        overhead=overhead or Overhead(),
    )


def peaks_of(schedule, costs):
    peaks = memory_use(schedule, costs).peak_bytes
    assert peaks is not None
    return peaks


def every_layout(layers, stages, names):
    """Every layout with every choice of options."""
    count = sum(each.count for each in layers if each.kind not in ("embedding", "head"))
    bare = [
        any(each.kind == "embedding" for each in layers),
        *[False] * (stages - 2),
        any(e.kind == "head" for e in layers),
    ]
    for cuts in combinations(range(count + stages - 1), stages - 1):
        counts = np.diff([-1, *cuts, count + stages - 1]) - 1
        if all(number or empty for number, empty in zip(counts, bare, strict=True)):
            for chosen in product(names, repeat=stages):
                yield tuple(counts.tolist()), tuple(StageOption(name=name) for name in chosen)


def least_of_all(name, shape, layers, names, limit=np.inf, **costs):
    schedule = strategy(name)(shape)
    best = np.inf
    for counts, options in every_layout(layers, schedule.stages, names):
        table = costs_of(layers, counts, options, **costs)
        if peaks_of(schedule, table).max() <= limit * (1 + 1e-9):
            best = min(best, simulate(schedule, table).timeline.makespan)
    return best


@pytest.mark.parametrize("name", SHAPES)
def test_its_makespan_is_the_simulators_and_its_peaks_are_those_of_memory_use(name):
    layers = [EMBEDDING, layer(count=3), layer(0.7, 0.9, 0.4, 0.8, count=5, static=0.2, more=(full(),)), HEAD]
    overhead = Overhead(op_gap=0.05, message_time=0.02)
    result = best_layout(layers, name, SHAPES[name], transfer=0.1, overhead=overhead, limits=40 * GIB, seconds=0.2)
    schedule = strategy(name)(SHAPES[name])
    costs = costs_of(layers, result.layout, result.options, 0.1 / SHAPES[name].slices, overhead)
    assert result.makespan == pytest.approx(simulate(schedule, costs).timeline.makespan)
    assert result.peaks == pytest.approx(peaks_of(schedule, costs))


@pytest.mark.parametrize("name", SHAPES)
def test_no_layout_is_better_where_it_says_so(name):
    layers = [EMBEDDING, layer(count=2), layer(1.6, 1.9, 0.8, count=3), layer(0.5, 0.6, 0.4), HEAD]
    result = best_layout(layers, name, SHAPES[name], transfer=0.1, seconds=20)
    assert result.proven
    transfer = 0.1 / SHAPES[name].slices
    assert result.makespan == pytest.approx(least_of_all(name, SHAPES[name], layers, ["none"], transfer=transfer))


times = st.floats(0.1, 4.0)


@st.composite
def models(draw):
    kinds = draw(st.lists(st.tuples(times, times, times, st.integers(1, 6)), min_size=1, max_size=3))
    layers = [layer(forward, inputs, weights, count=count) for forward, inputs, weights, count in kinds]
    head = layer(draw(times), draw(times), draw(times), kind="head")
    return [EMBEDDING, *layers, layer(count=4), *([head] if draw(st.booleans()) else [])]


@settings(max_examples=25, deadline=None)
@given(models(), st.sampled_from(["1f1b", "interleaved-1f1b", "zb-h1", "zbv", "dualpipev"]), st.integers(4, 12))
def test_it_is_never_worse_than_an_even_split_nor_better_than_its_bound(layers, name, microbatches):
    rule = strategy(name)
    shape = rule.shape(2, 2 * microbatches, None if rule.fixed_chunks else 2)
    result = best_layout(layers, name, shape, transfer=0.05, seconds=0.05)
    schedule = rule(shape)
    count = sum(each.count for each in layers if each.kind == "dense")
    least, more = divmod(count, schedule.stages)
    even = tuple(least + (stage < more) for stage in range(schedule.stages))
    costs = costs_of(layers, even, (StageOption(name="none"),) * schedule.stages, 0.05)
    assert result.makespan <= result.even_makespan <= simulate(schedule, costs).timeline.makespan * (1 + 1e-9)
    assert result.lower_bound <= result.makespan * (1 + 1e-9)
    assert result.gain >= 0


@st.composite
def small_models(draw):
    layers = []
    for _ in range(draw(st.integers(2, 3))):
        more = (full(draw(times), 2 * draw(times), draw(times), 0.2),) if draw(st.booleans()) else ()
        layers.append(
            layer(draw(times), draw(times), draw(times), draw(times), count=draw(st.integers(1, 2)), more=more)
        )
    head = layer(draw(times), draw(times), draw(times), 0.4, kind="head", static=0.5)
    return [
        *([EMBEDDING] if draw(st.booleans()) else []),
        *layers,
        layer(count=2),
        *([head] if draw(st.booleans()) else []),
    ]


@settings(max_examples=12, deadline=None)
@given(small_models(), st.sampled_from(["1f1b", "interleaved-1f1b", "zb-h1", "zbv", "dualpipev"]), st.floats(5.0, 20.0))
def test_of_every_layout_of_a_random_model_it_is_the_best_that_fits(layers, name, limit):
    least = least_of_all(name, SHAPES[name], layers, ["none", "full"], limit * GIB, transfer=0.1)
    if least == np.inf:
        with pytest.raises(InfeasibleError):
            best_layout(layers, name, SHAPES[name], transfer=0.1, limits=limit * GIB, seconds=20)
        return
    result = best_layout(layers, name, SHAPES[name], transfer=0.1, limits=limit * GIB, seconds=20)
    assert result.proven
    assert result.makespan == pytest.approx(least)


def test_a_bound_from_a_search_that_ended_early_holds_for_every_layout():
    layers = [layer(0.7, 1.1, 0.5, count=4), layer(1.6, 1.9, 0.8, count=3), HEAD]
    for name in ("1f1b", "zbv", "interleaved-1f1b"):
        result = best_layout(layers, name, SHAPES[name], seconds=0.0)
        assert 0 < result.lower_bound <= least_of_all(name, SHAPES[name], layers, ["none"]) * (1 + 1e-9)


def test_what_moves_to_the_host_is_free_as_long_as_the_forward():
    moved = LayerOption(
        name="offload",
        forward=1.0,
        backward_input=1.0,
        backward_weight=1.0,
        activation_bytes=0.1 * GIB,
        transfer_bytes=GIB,
    )
    layers = [layer(count=6, held=1.1, more=(moved,))]
    shape = Shape(ranks=2, microbatches=4)
    free = best_layout(layers, "1f1b", shape, seconds=20)
    fast = best_layout(layers, "1f1b", shape, limits=4 * GIB, host_bandwidth=GIB, seconds=20)
    slow = best_layout(layers, "1f1b", shape, limits=4 * GIB, host_bandwidth=GIB / 2, seconds=20)
    assert [option.name for option in fast.options] == ["offload", "none"]
    assert fast.makespan == free.makespan
    assert slow.makespan > free.makespan
    costs = costs_of(layers, slow.layout, slow.options, bandwidth=GIB / 2)
    assert slow.makespan == pytest.approx(simulate(strategy("1f1b")(shape), costs).timeline.makespan)


def test_some_layers_of_a_stage_can_recompute():
    layers = [layer(count=8, more=(full(),))]
    shape = Shape(ranks=2, microbatches=4)
    every = best_layout(layers, "1f1b", shape, limits=6.5 * GIB, seconds=20)
    some = best_layout(layers, "1f1b", shape, limits=6.5 * GIB, some_layers=["full"], seconds=20)
    assert some.makespan < every.makespan
    assert some.options[0].layers
    costs = costs_of(layers, some.layout, some.options)
    assert some.makespan == pytest.approx(simulate(strategy("1f1b")(shape), costs).timeline.makespan)
    assert some.peaks == pytest.approx(peaks_of(strategy("1f1b")(shape), costs))


def besides(held, extra):
    """An option with what it keeps, and what its backward holds besides."""
    return LayerOption(
        name="none",
        forward=1.0,
        backward_input=1.0,
        backward_weight=1.0,
        activation_bytes=held * GIB,
        weight_activation_bytes=held * GIB / 2,
        transient_bytes=extra * GIB,
    )


def walked_peaks(schedule, stages):
    """Every rank's peak op by op and layer by layer: a backward goes from the last layer to the first."""
    peaks = []
    for row in schedule:
        level = peak = 0.0
        for op in row:
            options = stages[op.stage]
            kept = sum(option.activation_bytes for option in options)
            after_inputs = sum(until_weight(option) for option in options)
            if op.kind == Kind.F:
                level += kept
            elif op.kind in (Kind.B, Kind.I):
                left = 0.0
                for option in reversed(options):
                    peak = max(peak, level - left + option.transient_bytes)
                    left += option.activation_bytes
                level += after_inputs - kept if op.kind == Kind.I else -kept
            else:
                level -= after_inputs
            peak = max(peak, level)
        peaks.append(peak)
    return peaks


@pytest.mark.parametrize("name", ["1f1b", "interleaved-1f1b", "zb-h1", "zbv"])
@pytest.mark.parametrize("extra", [0.4, 3.0])
def test_what_a_backward_holds_besides_comes_on_top_of_what_was_kept_before_it(name, extra):
    embedding = LaidLayer(options=(besides(0.1, extra),), kind="embedding")
    head = LaidLayer(options=(besides(0.2, 2 * extra),), kind="head")
    layers = [
        embedding,
        LaidLayer(options=(besides(1.0, 0.5),), count=4),
        LaidLayer(options=(besides(0.3, extra),), count=3),
    ]
    layers.append(head)
    result = best_layout(layers, name, SHAPES[name])
    stages = [[option for _, option in stage] for stage in on_stages(layers, result.layout, result.options)]
    stages[0] = [stages[0][-1], *stages[0][:-1]]
    assert result.peaks == pytest.approx(walked_peaks(strategy(name)(SHAPES[name]), stages))


def test_the_same_question_has_the_same_answer():
    layers = [EMBEDDING, layer(count=7), layer(0.7, 1.1, 0.5, count=4), HEAD]
    answers = {best_layout(layers, "1f1b", SHAPES["1f1b"], transfer=0.1, seconds=20) for _ in range(2)}
    assert len(answers) == 1
    assert isinstance(answers.pop(), BestLayout)


@pytest.mark.parametrize(
    ("layers", "limits", "error", "message"),
    [
        ([HEAD], None, InputError, "no transformer layers"),
        ([layer(count=600)], None, InputError, "600 layers are too many: expected at most 512"),
        ([layer(), HEAD, layer(count=4)], None, InputError, "a head layer is between"),
        ([layer(count=2)], None, ShapeError, "2 transformer layers are too few for 3 stages"),
        ([layer(count=4)], -1.0, CostError, "memory limits"),
        ([layer(count=4)], [1.0, 2.0], CostError, "memory limits"),
    ],
)
def test_models_and_limits_that_have_no_layout(layers, limits, error, message):
    with pytest.raises(error, match=message):
        best_layout(layers, "1f1b", SHAPES["1f1b"], limits=limits)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (lambda: (replace(LAYER, forward=-1.0),), "invalid layer: forward is -1"),
        (lambda: (LAYER, LAYER), "duplicate option names"),
        (lambda: (), "has no options"),
    ],
)
def test_options_of_a_layer_that_are_refused(options, message):
    with pytest.raises(CostError, match=message):
        LaidLayer(options=options())
