import json
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pipeplan
from pipeplan.costs import IN_COSTS, SETTINGS, Communication, Costs, Settings, SettingsTable
from pipeplan.formats import costs_json, parse_costs_json
from pipeplan.formats.costs_record import CostsRecord, SettingsBesideRecord
from pipeplan.foundation.errors import CostError, FormatError
from pipeplan.model import Placement

COSTS: dict[str, Any] = {
    "format": "pipeplan-costs",
    "version": 1,
    "time_unit": "ms",
    "forward": [1.0, 2.0],
    "backward": [2.0, 4.0],
    "backward_input": [1.0, 2.0],
    "backward_weight": [1.0, 2.0],
    "recompute": [1.0, 2.0],
    "overlap": [3.0, 5.0],
    "transfer": {"latency": 0.5, "bytes": 100.0, "bandwidth": 10.0},
    "memory": {"activation": [8.0, 8.0], "freed_by_weight": [6.0, 6.0], "static": [100.0, 90.0], "in_bytes": True},
}


def changed(**changes) -> str:
    return json.dumps(COSTS | changes)


def test_costs():
    given_settings = Settings(
        forward_times=(1.0, 2.0),
        backward_times=(2.0, 4.0),
        overlap_times=(3.0, 5.0),
        p2p_time=0.5,
        p2p_bytes=100,
        p2p_bandwidth=10,
        activation_bytes=(8.0, 8.0),
        weight_activation_bytes=(6.0, 6.0),
        static_bytes=(100.0, 90.0),
        time_unit="ms",
    )
    text = costs_json(given_settings.costs(Placement.linear(2)))
    assert json.loads(text) == COSTS
    assert costs_json(parse_costs_json(text)) == text


def test_a_file_keeps_every_field_of_costs_but_their_name():
    # What a file loses, and a simulation reads, makes another timeline of the same costs. Messages are a field of occupied
    # costs alone, whose times include what others have in their overhead.
    written = {field.name for field in msgspec.structs.fields(CostsRecord)} - {"format", "version"}
    assert written == {field.name for field in fields(Costs)} - {"name", "messages"}


@pytest.mark.parametrize("communication", get_args(Communication))
def test_a_file_keeps_how_transfers_behave(communication, tmp_path):
    options: Any = {"ranks": 4, "microbatches": 8, "p2p_time": 0.5, "message_time": 0.25}
    before = pipeplan.simulate("1f1b", communication=communication, **options)
    before.save(tmp_path / "c.costs.json")
    again = pipeplan.simulate("1f1b", microbatches=8, config=tmp_path / "c.costs.json")
    assert again.makespan == before.makespan
    assert np.array_equal(again.timeline.start, before.timeline.start)


TIMES = st.floats(1e-3, 1e6)


@given(st.integers(1, 4), TIMES, TIMES, st.one_of(st.none(), TIMES), st.floats(0, 10), st.one_of(st.none(), TIMES))
@settings(max_examples=40)
def test_reader_and_writer_undo_each_other(ranks, forward, backward, overlap, latency, held):
    costs = Settings(
        forward_times=forward,
        backward_times=backward,
        overlap_times=None if overlap is None else forward + backward + overlap,
        p2p_time=latency,
        activation_bytes=held,
    ).costs(Placement.v(ranks))
    again = parse_costs_json(costs_json(costs))
    for name in ("forward", "backward", "backward_input", "backward_weight", "recompute"):
        assert np.array_equal(getattr(again, name), getattr(costs, name))
    assert (again.overlap is None) == (costs.overlap is None)
    assert again.transfer == costs.transfer
    for name in ("activation", "freed_by_weight", "static"):
        assert np.array_equal(getattr(again.memory, name), getattr(costs.memory, name))
    assert again.memory.in_bytes == costs.memory.in_bytes


def test_strict():
    for text, error, message in [
        (changed()[:-4], FormatError, "c.json: line 1, column 389: the text ends too early"),
        ("7", FormatError, "expected a group of keys"),
        (changed(format="pipeplan-schedule"), FormatError, "Invalid enum value 'pipeplan-schedule'"),
        (changed(version=2), FormatError, "unsupported version 2: this pipeplan reads version 1"),
        (changed(colour=1), FormatError, "unknown key 'colour'"),
        (changed(forward=["1", 2]), FormatError, "Expected `float`, got `str`"),
        (changed(forward=[1.0, 0.0]), CostError, "c.json: forward time of stage 1 must be more than 0"),
        (changed(backward=[1.0]), CostError, "backward times: 1 values for 2 stages"),
        (changed(overlap=[1.0, 1.0]), CostError, "below its longer half"),
        (changed(memory=COSTS["memory"] | {"static": [1.0]}), CostError, r"memory has \[2, 2, 1\] stages"),
        (changed(memory=COSTS["memory"] | {"static": [1.0, -1.0]}), CostError, "at least 0 and finite"),
        (
            changed(transfer={"latency": -1, "bytes": 0, "bandwidth": None}),
            CostError,
            "latency and bytes must be at least 0",
        ),
    ]:
        with pytest.raises(error, match=message):
            parse_costs_json(text, name="c.json")


def test_a_file_of_costs_has_a_place_for_every_setting_that_costs_do_not_contain():
    kinds = get_type_hints(SettingsTable)
    places = get_type_hints(SettingsBesideRecord)
    assert set(places) == set(SETTINGS) - IN_COSTS
    assert all(places[name] == kinds[name] | msgspec.UnsetType for name in places)
