"""One table of settings, and everything that derives from it."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields, replace
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.build import options
from pipeplan.costs import OPS, SETTINGS, Costs, Settings, SettingsKeywords, settings_given, settings_of
from pipeplan.formats import costs_json
from pipeplan.foundation.errors import CostError, InputError, ShapeError, UnknownNameError
from pipeplan.model import Placement
from pipeplan.strategies import strategy

SAMPLES = {
    "count": 3,
    "number": 1.5,
    "per_stage": [0.5, 1.0],
    "pair_times": [[3.0, 4.0], [3.5, 4.5]],
    "segments": {op: [{"compute": 1.0}, {"all_to_all": 0.5}] for op in OPS},
    "text": "x",
    "flag": True,
    "limit": ["8act", 7.0],
    "stages": [0, 1],
    "layers": [{"forward": 1.0, "backward_input": 1.0, "backward_weight": 1.0}],
    "layout": [1, 2],
    "stage_layers": "Et|tL",
    "per_microbatch": [1.0, 2.0],
    "lengths": [100.0, [50.0, 25.0]],
}


def sample(name: str):
    setting = SETTINGS[name]
    return setting.choices[-1] if setting.choices else SAMPLES[setting.kind]


def test_the_table_has_every_field_and_every_keyword():
    assert tuple(SETTINGS) == tuple(field.name for field in fields(Settings))
    assert set(SettingsKeywords.__optional_keys__) == {*SETTINGS, "config", "settings"}


def test_keywords_and_fields_have_the_same_types():
    """Keywords take None and lists where a field has its default and tuples."""
    for name in SETTINGS:
        keyword, field = get_type_hints(SettingsKeywords)[name], get_type_hints(Settings)[name]
        assert type(None) in get_args(keyword), name
        plain = {part for part in get_args(field) or (field,) if part is not type(None)}
        scalars = {part for part in plain if part in (int, float, str, bool)}
        assert scalars <= set(get_args(keyword)) or plain <= set(get_args(get_args(keyword)[0]) or ()), name
        assert settings_given({name: sample(name)})[name] is not None, name


def test_every_setting_is_said_in_words():
    for name in SETTINGS:
        setting = SETTINGS[name]
        assert setting.help.endswith("."), name
        assert setting.title, name
        assert setting.group, name
        assert setting.range is not None or setting.kind not in ("count", "number", "per_stage", "pair_times"), name
        assert bool(setting.choices) == (setting.kind == "choice"), name


def test_what_is_made_from_the_declarations_is_current():
    for path, text in options.files().items():
        assert path.read_text() == text, "write it with python -m docs.build.options --write"


def test_settings_are_values_that_convert_what_they_are_given():
    stages: Any = [np.int64(0)]
    costs = Settings(num_devices=2, forward_times=np.array([1, 2]), activation_bytes=["2GiB", 1], recompute=stages)  # type: ignore[call-arg]
    assert (costs.ranks, costs.forward_times, costs.activation_bytes) == (2, (1.0, 2.0), (2.0**31, 1.0))
    assert costs == Settings(ranks=2, forward_times=(1, 2), activation_bytes=(2**31, 1), recompute=(0,))
    assert hash(costs) == hash(copy.deepcopy(costs))
    assert pickle.loads(pickle.dumps(costs)) == costs
    assert replace(costs, ranks=4) == costs.replace(ranks=4) != costs
    with pytest.raises(AttributeError):
        costs.ranks = 3  # type: ignore[misc]
    with pytest.raises(UnknownNameError, match="unknown setting 'rank'; did you mean 'ranks'"):
        Settings(rank=2)  # type: ignore[call-arg]
    assert repr(Settings(ranks=2, p2p_time=0)) == "Settings(ranks=2)"


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ({"ranks": 4, "p2p_time": 1.0}, {"p2p_time": 2.0}, {"ranks": 4, "p2p_time": 2.0}),
        ({"ranks": 4}, {"stages": 6}, {"stages": 6}),
        ({"stages": 4}, {"num_ranks": 6}, {"ranks": 6}),
        ({"ranks": 4}, {"stages": None}, {"ranks": 4}),
        ({"ranks": 4}, {"ranks": 2, "stages": 4}, {"ranks": 2, "stages": 4}),
        ({"memory_limit": "8act"}, {"memory_limit": None}, {}),
        ({"costs_name": "mine", "p2p_time": 1.0}, {"p2p_time": 2.0}, {"p2p_time": 2.0}),
        ({"costs_name": "mine", "p2p_time": 1.0}, {"ranks": 2}, {"costs_name": "mine", "p2p_time": 1.0, "ranks": 2}),
    ],
)
def test_a_change_keeps_the_other_settings(before, changes, after):
    assert Settings(**before).replace(**changes) == Settings(**after)


@pytest.mark.parametrize(
    ("options", "forward", "inputs", "weights", "full"),
    [
        ({}, 1, 1, 1, 2),
        ({"forward_times": 12.0}, 12, 12, 12, 24),
        ({"backward_times": 5.0}, 1, 2.5, 2.5, 5),
        ({"forward_times": 3.0, "backward_times": 5.0}, 3, 2.5, 2.5, 5),
        ({"backward_input_times": 3.0, "backward_weight_times": 4.0}, 1, 3, 4, 7),
        ({"forward_times": 2.0, "backward_input_times": 3.0}, 2, 3, 2, 5),
        ({"backward_times": 5.0, "backward_input_times": 3.0}, 1, 3, 2, 5),
        ({"backward_times": 5.0, "backward_weight_times": 3.0}, 1, 2, 3, 5),
        ({"backward_times": 5.0, "backward_input_times": 3.0, "backward_weight_times": 4.0}, 1, 3, 4, 5),
    ],
)
def test_times_that_are_not_set_follow_from_those_that_are(options, forward, inputs, weights, full):
    costs = Settings(**options).costs(Placement.linear(2))
    times = (costs.forward, costs.backward_input, costs.backward_weight, costs.backward, costs.recompute)
    for values, expected in zip(times, (forward, inputs, weights, full, forward), strict=True):
        assert values.tolist() == [expected] * 2


def test_a_half_is_less_than_the_whole():
    with pytest.raises(
        CostError, match=r"backward input time 2 of stage 0 must be less .* full backward time, 2"
    ) as caught:
        Settings(backward_times=2.0, backward_input_times=2.0).costs(Placement.linear(2))
    assert caught.value.field == "backward_input_times"


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"ranks": 0}, ShapeError, "ranks must be at least 1, not 0"),
        ({"ranks": 10**9}, ShapeError, "ranks must be at most 65,536, not 1,000,000,000"),
        ({"forward_times": 0}, CostError, "forward time must be more than 0 and finite, not 0"),
        ({"forward_times": 1e308}, CostError, "forward time: .* too large"),
        ({"forward_times": True}, CostError, "expected a number or a list, got true or false"),
        ({"forward_times": [1.0, float("nan")]}, CostError, "forward time of stage 1 must be more than 0"),
        ({"p2p_time": float("nan")}, CostError, "at least 0 and finite"),
        ({"p2p_bandwidth": 0}, CostError, "bandwidth must be more than 0"),
        ({"memory_limit": "many"}, CostError, "memory limit: invalid size"),
        ({"memory_limit": "0act"}, CostError, "memory limit must be more than 0"),
        ({"overlap_times": 1.5}, CostError, r"overlap time 1\.5 of stage 0 is below its longer half, 2"),
    ],
)
def test_values_that_cannot_be(values, error, message):
    with pytest.raises(error, match=message) as caught:
        Settings(**values).costs(Placement.linear(2))
    assert caught.value.field == next(iter(values))


@pytest.mark.parametrize(
    ("name", "options", "parts"),
    [
        ("1f1b", {"forward_times": 1.0, "backward_times": 2.0}, []),
        ("1f1b", {}, ["times are assumed: forward 1"]),
        ("1f1b", {"forward_times": 3.0}, ["the backward time is assumed to be twice the forward's"]),
        ("1f1b", {"backward_times": 3.0}, ["the forward time is assumed to be 1"]),
        ("zb-h1", {"forward_times": 1.0, "backward_times": 2.0}, ["half of the full one each"]),
        ("zb-h1", {"forward_times": 1.0, "backward_input_times": 2.0}, ["backward time for weights is assumed"]),
        (
            "dualpipe",
            {"forward_times": 1.0, "backward_times": 2.0, "backward_input_times": 1.0},
            ["as long as both in sequence"],
        ),
        ("zb-h1", {"forward_times": 1.0, "backward_input_times": 2.0, "backward_weight_times": 1.0}, []),
    ],
)
def test_what_was_assumed_is_said(name, options, parts):
    schedule = strategy(name)(strategy(name).shape(2, 4))
    sentences = Settings(**options).assumed(schedule)
    assert len(sentences) == len(parts)
    assert all(part in sentence for part, sentence in zip(parts, sentences, strict=True))
    assert Settings(**options).times_given == bool(options)


@pytest.mark.parametrize(
    ("recompute", "stages"),
    [("none", ()), ("all", (0, 1, 2, 3)), ("0-1,3", (0, 1, 3)), ("2 0", (0, 2)), ((3, 1), (1, 3)), ((), ())],
)
def test_which_stages_recompute(recompute, stages):
    assert Settings(recompute=recompute).recomputed(4) == stages


@pytest.mark.parametrize("name", ["recompute", "offload"])
def test_stages_that_there_are_not(name):
    four: Any = {name: "2-4"}
    settings = Settings(**four)
    with pytest.raises(ShapeError, match=f"{name}: there is no stage 4") as caught:
        settings.offloaded(4) if name == "offload" else settings.recomputed(4)
    assert caught.value.field == name
    odd: Any = {name: "odd"}
    with pytest.raises(ShapeError, match=f"{name} must be none, all or stages") as caught:
        Settings(**odd)
    assert caught.value.field == name


def test_streams_are_for_transfers_that_run_on_streams():
    placement = Placement.linear(2)
    assert Settings(communication="streams").costs(placement).streams == "rank"
    costs = Settings(communication="streams", streams="direction").costs(placement)
    assert (costs.communication, costs.streams) == ("streams", "direction")
    with pytest.raises(CostError, match=r"streams is set to edge, .* communication is blocking") as caught:
        Settings(communication="blocking", streams="edge").costs(placement)
    assert caught.value.field == "streams"


def test_a_stage_recomputes_or_offloads():
    assert Settings(recompute="0-1", offload="2,3").offloaded(4) == (2, 3)
    with pytest.raises(ShapeError, match="stage 1 is also in recompute") as caught:
        Settings(recompute="0-1", offload="1-3").offloaded(4)
    assert caught.value.field == "offload"


def test_how_long_a_copy_to_the_host_takes():
    placement = Placement.loop(2, 2)
    assert Settings().costs(placement).offload is None
    assert copies(Settings(offload_times=3.0).costs(placement)) == [1.5] * 4
    by_bytes = Settings(activation_bytes=8.0, offload_bytes=4.0, offload_bandwidth=2.0).costs(placement)
    assert copies(by_bytes) == [1.0] * 4
    assert by_bytes.memory.offloaded.tolist() == [2.0] * 4
    assert copies(Settings(activation_bytes=8.0, offload_bandwidth=2.0).costs(placement)) == [2.0] * 4
    again = Settings(**settings_of(by_bytes)).costs(placement)
    assert (copies(again), again.memory.offloaded.tolist()) == ([1.0] * 4, [2.0] * 4)


def copies(costs: Costs) -> list[float]:
    times: list[float] = costs.require_offload().tolist()
    return times


@pytest.mark.parametrize(
    ("options", "field", "message"),
    [
        ({"offload_bandwidth": 1.0}, "offload_bandwidth", "needs activation_bytes"),
        (
            {"offload_times": 1.0, "offload_bandwidth": 1.0, "activation_bytes": 1.0},
            "offload_times",
            "set only one of them",
        ),
        ({"offload_bytes": 1.0}, "offload_bytes", "part of the activation bytes, which are not set"),
        ({"recompute_bytes": 1.0}, "recompute_bytes", "part of the activation bytes, which are not set"),
        (
            {"recompute_bytes": 3.0, "activation_bytes": 2.0},
            "recompute_bytes",
            "must be from 0 to its activation, 2 bytes",
        ),
        ({"offload_bytes": (1.0, 3.0), "activation_bytes": 2.0}, "offload_bytes", "of stage 1 must be from 0"),
    ],
)
def test_offloads_and_recomputations_that_cannot_be(options, field, message):
    with pytest.raises(CostError, match=message) as caught:
        Settings(**options).costs(Placement.linear(2))
    assert caught.value.field == field


@given(st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([n for n, s in SETTINGS.items() if s.range]))
def test_a_number_is_taken_or_refused_at_its_field(value, name):
    setting = SETTINGS[name]
    number = int(value) if setting.kind == "count" and np.isfinite(value) else value
    if setting.kind == "count" and not isinstance(number, int):
        return
    error = refusal_of(name, [number] if setting.kind in ("per_microbatch", "lengths") else number)
    assert error is None or (error.field == name and str(error).startswith(setting.noun))


def refusal_of(name, value) -> InputError | None:
    try:
        Settings(**{name: value})
    except InputError as error:
        return error
    return None


def test_errors_travel_between_processes():
    for error in (
        ShapeError("too many", field="ranks"),
        UnknownNameError("strategy", "zbw", ["zbv"], field="schedules"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.field) == (type(error), str(error), error.field)


def test_a_list_per_rank_is_the_sum_of_the_chunks_of_each_rank():
    """Equal values say the same as one number, whatever the setting and the placement."""
    placements = [
        Placement.loop(4, 2), Placement.loop(3, 3), Placement.wave(4, 4), Placement.bidirectional_v(4), Placement.loop(1, 2),
        Placement.of((0, 0, 1, 2, 2, 2)),
    ]  # fmt: skip
    values: dict[str, Any] = {
        name: 0.25 if setting.unit == "shares" else 3.0 if name == "overlap_times" else 2.0
        for name, setting in SETTINGS.items()
        if setting.kind in ("per_stage", "pair_times")
        and name not in ("attention_share", "backward_input_times", "backward_weight_times")
    } | {"attention_share": 0.5, "lengths": (100.0, 300.0), "forward_times": 1.0}
    for placement in placements:
        for scope in ("rank", "stage"):
            alike = Settings(**values | {"times_per": scope})
            lists: dict[str, Any] = {
                name: (value,) * placement.ranks for name, value in values.items() if name != "lengths"
            }
            assert costs_json(alike.replace(**lists).costs(placement)) == costs_json(alike.costs(placement))


def test_the_chunks_of_a_rank_share_its_value():
    times = Settings(forward_times=(2, 4, 6), static_bytes=(20, 40, 60), activation_bytes=6)
    loop = times.costs(Placement.loop(3, 2))
    assert loop.forward.tolist() == [1, 2, 3, 1, 2, 3]
    assert loop.memory.static.tolist() == [10, 20, 30, 10, 20, 30]
    assert times.costs(Placement.v(3)).forward.tolist() == [1, 2, 3, 3, 2, 1]
    assert times.replace(times_per="stage").costs(Placement.v(3)).forward.tolist() == [2, 4, 6, 6, 4, 2]
    assert times.costs(Placement.linear(3)).forward.tolist() == [2, 4, 6]
    # The stages of the second copy of a model are those of the first: they cannot have times of their own.
    pair = times.replace(forward_times=(2, 4, 6, 8), static_bytes=None).costs(Placement.bidirectional_v(4))
    assert pair.forward.tolist() == [1, 2, 3, 4, 4, 3, 2, 1]
    # Ranks with other numbers of stages; and a list per stage, which no other list changes.
    uneven = Settings(forward_times=(4, 3), backward_times=(1, 2, 3)).costs(Placement.of((0, 0, 1)))
    assert (uneven.forward.tolist(), uneven.backward.tolist()) == ([2, 2, 3], [1, 2, 3])


def test_rows_of_factors_may_be_one_per_rank():
    factors = Settings(microbatch_factors=[[1, 2, 3], [4, 5, 6]]).factors(Placement.v(2))
    assert factors is not None
    assert factors.forward.tolist() == [[1, 2, 3], [4, 5, 6], [4, 5, 6], [1, 2, 3]]


def test_a_wrong_length_says_which_lengths_are_right():
    for name in ("forward_times", "activation_bytes", "slice_attention"):
        wrong: dict[str, Any] = {name: (0.5,) * 3}
        with pytest.raises(CostError) as caught:
            Settings(**wrong).costs(Placement.v(4))
        words = "3 values for 8 stages on 4 ranks; set one number, 8 values (one per stage) or 4 (one per rank)"
        assert str(caught.value) == f"{name.replace('_', ' ')}: {words}"
        with pytest.raises(CostError, match=r"3 values for 4 stages; set one number, or 4 values$"):
            Settings(**wrong).costs(Placement.linear(4))
    with pytest.raises(CostError, match=r"3 rows.* for each of 4 stages or 2 ranks"):
        Settings(microbatch_factors=[[1.0], [2.0], [3.0]]).costs(Placement.v(2))


def test_padding_repeats_a_short_list_as_the_first_simulator_did():
    padded = Settings(forward_times=(1, 2), pad_times=True)
    assert padded.costs(Placement.v(2)).forward.tolist() == [1, 2, 2, 2]
    assert padded.costs(Placement.linear(1)).forward.tolist() == [1]
