"""Costs per layer, layouts, and their balance against all that there are."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipeplan
from pipeplan.costs import (
    Layer,
    Settings,
    balanced,
    balanced_layers,
    blocks_of,
    bounds_of,
    load_config,
    load_layers,
    stage_settings,
)
from pipeplan.foundation.errors import CostError, InfeasibleError, InputError, UnknownNameError

EMBEDDING = Layer(forward=0.1, backward_input=0.05, backward_weight=0.15, static_bytes=40.0)
BLOCK = Layer(
    forward=1.0, backward_input=1.1, backward_weight=0.9, activation_bytes=10.0, weight_activation_bytes=4.0,
    static_bytes=16.0,
)  # fmt: skip
HEAD = Layer(forward=0.5, backward_input=0.5, backward_weight=0.5, activation_bytes=3.0, static_bytes=40.0)
MODEL = [EMBEDDING, *[BLOCK] * 6, HEAD]


def layouts(layers: int, stages: int):
    """All there are."""
    for cuts in combinations(range(1, layers), stages - 1):
        bounds = (0, *cuts, layers)
        yield tuple(stop - first for first, stop in pairwise(bounds))


def sums(values, layout):
    return [sum(values[first:stop]) for first, stop in bounds_of(layout, len(values))]


def test_even_layouts():
    assert balanced((1, 1, 1, 1, 1, 1), 3) == (2, 2, 2)
    assert balanced((0.1, 1, 1, 1, 1, 0.5), 2) == (3, 3)
    assert balanced((5, 1, 1, 1), 2) == (1, 3)
    assert balanced((1, 1, 1), 3) == (1, 1, 1)
    assert balanced((0.1,) * 10, 3) == (3, 3, 4)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=9), st.data())
def test_no_layout_has_a_faster_slowest_stage(times, data):
    stages = data.draw(st.integers(1, len(times)))
    chosen = sums(times, balanced(times, stages))
    everyone = [sums(times, layout) for layout in layouts(len(times), stages)]
    best = min((max(stage_times), sum(time**2 for time in stage_times)) for stage_times in everyone)
    assert (max(chosen), sum(time**2 for time in chosen)) == best


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8),
    st.data(),
)
def test_no_layout_within_the_memory_is_faster(numbers, data):
    layers = [
        Layer(forward=time, backward_input=0, backward_weight=0, activation_bytes=held, static_bytes=static)
        for time, held, static in numbers
    ]
    stages = data.draw(st.integers(1, len(layers)))
    room = data.draw(st.lists(st.integers(0, 60), min_size=stages, max_size=stages))
    held = [min(stages - stage, 3) for stage in range(stages)]

    def fits(layout):
        activations = sums([layer.activation_bytes for layer in layers], layout)
        static = sums([layer.static_bytes for layer in layers], layout)
        return all(s + h * a <= r for s, h, a, r in zip(static, held, activations, room, strict=True))

    times = [layer.time for layer in layers]
    possible = [max(sums(times, layout)) for layout in layouts(len(layers), stages) if fits(layout)]
    if not possible:
        with pytest.raises(InfeasibleError, match="no layout of"):
            balanced_layers(layers, stages, room=room, held=held)
        return
    layout = balanced_layers(layers, stages, room=room, held=held)
    assert fits(layout)
    assert max(sums(times, layout)) == min(possible)


def test_stages_of_layers_are_settings():
    settings = stage_settings(MODEL, (3, 5))
    assert settings["forward_times"] == (2.1, 4.5)
    assert settings["activation_bytes"] == (20.0, 43.0)
    assert settings["weight_activation_bytes"] == (8.0, 19.0)
    assert settings["static_bytes"] == (72.0, 104.0)
    result = pipeplan.simulate("1f1b", ranks=2, microbatches=4, **settings)
    assert result.timeline.work.tolist() == pytest.approx([4 * (2.1 + 2.25 + 1.95), 4 * (4.5 + 4.9 + 4.1)])


def test_stages_have_what_layers_have_beside_the_usual():
    """A stage holds, and keeps when it recomputes, the input of its first layer."""
    block = replace(BLOCK, backward=1.5, recompute=0.8, offload=0.2, input_bytes=2.0, offload_bytes=9.0)
    settings = stage_settings([EMBEDDING, block, block, HEAD], (2, 2))
    assert settings["backward_times"] == pytest.approx((0.2 + 1.5, 1.5 + 1.0))
    assert settings["recompute_times"] == pytest.approx((0.1 + 0.8, 0.8 + 0.5))
    assert settings["offload_times"] == (0.2, 0.2)
    assert settings["activation_bytes"] == (10.0, 13.0 + 2.0)
    assert settings["weight_activation_bytes"] == (4.0, 7.0 + 2.0)
    assert settings["recompute_bytes"] == (0.0, 2.0)
    assert settings["offload_bytes"] == (9.0, 12.0 + 2.0)
    result = pipeplan.simulate("1f1b", ranks=2, layers=[block] * 4, recompute="all")
    assert result.costs.backward.tolist() == [3.0, 3.0]
    assert result.costs.recompute.tolist() == [1.6, 1.6]
    assert result.costs.memory.recompute_keeps.tolist() == [2.0, 2.0]
    assert (result.warnings, result.notes) == ((), ())


def of_roles(*roles):
    return [replace(BLOCK, role=role) for role in roles]


@pytest.mark.parametrize(
    ("roles", "layout", "blocks", "mtp"),
    [
        (("embedding", *["block"] * 6, "head"), (4, 4), (3, 3), 0),
        (("embedding", None, None, None, "mtp", "head"), (1, 2, 3), (0, 2, 1), 1),
        (("block",) * 4, (1, 3), (1, 3), 0),
        (("embedding", "block", "head"), (3,), (1,), 0),
    ],
)
def test_blocks_follow_from_roles(roles, layout, blocks, mtp):
    assert blocks_of(MODEL, (3, 5)) is None  # without roles
    assert blocks_of(of_roles(*roles), layout) == (blocks, mtp)
    assert Settings(layers=of_roles(*roles), layers_per_stage=layout).blocks(len(layout)) == (blocks, mtp)


@pytest.mark.parametrize(
    ("roles", "layout", "message"),
    [
        (
            ("block", "embedding", "head"),
            (1, 2),
            "layer 0 is block before embedding: expected embedding, block, mtp, head",
        ),
        (("block", "head", "mtp"), (1, 2), "layer 1 is head before mtp"),
        (
            ("embedding", "embedding", "block"),
            (1, 2),
            "stage 1 has the embedding, which trainers have on the first stage",
        ),
        (("embedding", "block", "mtp", "head"), (3, 1), "stage 0 has the mtp, which trainers have on the last stage"),
    ],
)
def test_roles_where_no_trainer_has_them(roles, layout, message):
    with pytest.raises(InputError, match=message):
        blocks_of(of_roles(*roles), layout)


@pytest.mark.parametrize("layout", [(4, 3), (9, -1), ()])
def test_layouts_that_do_not_fit(layout):
    with pytest.raises(InputError, match="8 layers of the model"):
        stage_settings(MODEL, layout)


def test_layers_that_cannot_be():
    with pytest.raises(CostError, match="forward of a layer must be at least 0 and finite, not -1"):
        Layer(forward=-1, backward_input=1, backward_weight=1)
    with pytest.raises(UnknownNameError, match="unknown role of a layer 'blok'; did you mean 'block'"):
        Layer(forward=1, backward_input=1, backward_weight=1, role="blok")  # type: ignore[arg-type]
    with pytest.raises(CostError, match="must add up to more than 0"):
        Layer(forward=0, backward_input=0, backward_weight=0)
    with pytest.raises(CostError, match="backward input of stage 0 takes no time"):
        stage_settings([Layer(forward=1, backward_input=0, backward_weight=1)], (1,))
    with pytest.raises(InputError, match="8 layers cannot make 9 stages"):
        balanced_layers(MODEL, 9)


LAYERS = [
    {"forward": 0.1, "backward_input": 0.05, "backward_weight": 0.15},
    {"forward": 1, "backward_input": 1.1, "backward_weight": 0.9, "activation_bytes": 10.0, "count": 6},
    {"forward": 0.5, "backward_input": 0.5, "backward_weight": 0.5},
]


@pytest.mark.parametrize(("name", "stages"), [("1f1b", 2), ("zbv", 4), ("interleaved-1f1b", 4)])
def test_layers_are_a_setting_that_every_schedule_lays_out_for_itself(name, stages):
    result = pipeplan.simulate(name, ranks=2, microbatches=4, layers=LAYERS)
    assert result.costs.stages == stages
    assert result.costs.forward.sum() == pytest.approx(6.6)
    assert (result.warnings, result.notes) == ((), ())


def test_a_layout_of_ones_own():
    result = pipeplan.simulate(
        "1f1b", ranks=2, microbatches=4, layers=LAYERS, layers_per_stage=(2, 6), memory_limit="1KiB"
    )
    assert result.costs.forward.tolist() == [1.1, 5.5]
    with pytest.raises(CostError, match="layers per stage: 3 values for 2 stages"):
        pipeplan.simulate("1f1b", ranks=2, layers=LAYERS, layers_per_stage=(2, 3, 3))
    with pytest.raises(CostError, match="forward times follow from the layers") as caught:
        pipeplan.simulate("1f1b", ranks=2, layers=LAYERS, forward_times=1.0)
    assert caught.value.field == "forward_times"
    with pytest.raises(CostError, match="but no layers"):
        pipeplan.simulate("1f1b", ranks=2, layers_per_stage=(1, 1))


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([{"forward": 1.0, "backward_input": 1.0}], r"layers\[0\]: the key 'backward_weight' is missing"),
        ([{"forward": 1.0, "backward_input": 1.0, "backward_weight": 1.0, "byte": 1}], "layer key 'byte'"),
        ([{"forward": 1e308, "backward_input": 1.0, "backward_weight": 1.0}], "forward of a layer is too large"),
        (
            [{"forward": 1.0, "backward_input": 1.0, "backward_weight": 1.0, "count": 10**9}],
            "count of a layer must be 1 to",
        ),
        ([{"forward": 1.0, "backward_input": 1.0, "backward_weight": 1.0, "role": "x"}], "role"),
        ([1.0], "layers"),
    ],
)
def test_layers_with_slips(layers, message):
    with pytest.raises(InputError, match=message) as caught:
        pipeplan.simulate("1f1b", ranks=2, layers=layers)
    assert caught.value.field == "layers"


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_a_file_of_layers(tmp_path, ending):
    path = tmp_path / f"layers.{ending}"
    path.write_text(json.dumps(LAYERS))
    config = tmp_path / "config.yaml"
    config.write_text(f"ranks: 2\nmicrobatches: 4\nlayers: {json.dumps(LAYERS)}\n")
    assert load_layers(path) == load_config(config).settings["layers"] == load_layers(config)
    config.write_text(f"pair_slowdown: 1.2\nlayers: {json.dumps(LAYERS)}\n")
    with pytest.raises(CostError, match="also sets pair_slowdown: pass it as a config file, with -c"):
        load_layers(config)
