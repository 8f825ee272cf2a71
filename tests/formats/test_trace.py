import json
from typing import Any

import pytest
from hypothesis import given, settings

from pipeplan.costs import Settings
from pipeplan.formats import chrome_trace
from pipeplan.model import Kind, Schedule, crosses_ranks, dependencies, parse_schedule
from pipeplan.simulation import simulate
from tests.formats.schedules import schedules

PLAN = "0F0 0B0\n1F0 1B0"

Event = dict[str, Any]


def trace_of(schedule: Schedule, *, memory: bool = True, **given_settings) -> dict[str, list[Event]]:
    """The events of a simulated schedule by their phase."""
    simulation = simulate(schedule, Settings(**given_settings).costs(schedule.placement))
    document = json.loads(chrome_trace(simulation.timeline, simulation.memory if memory else None))
    by_phase: dict[str, list[Event]] = {}
    for event in document["traceEvents"]:
        by_phase.setdefault(event["ph"], []).append(event)
    return by_phase


def test_a_track_a_rank_and_an_event_an_op():
    events = trace_of(parse_schedule(PLAN), time_unit="us", p2p_time=0.5)
    assert [(event["tid"], event["name"], event["ts"], event["dur"]) for event in events["X"]] == [
        (0, "0F0", 0, 1),
        (0, "0B0", 5, 2),
        (2, "1F0", 1.5, 1),
        (2, "1B0", 2.5, 2),
    ]
    names = {event["tid"]: event["args"]["name"] for event in events["M"] if event["name"] == "thread_name"}
    assert names == {0: "rank 0", 2: "rank 1"}


@pytest.mark.parametrize(("unit", "microseconds"), [("ns", 1e-3), ("us", 1), ("ms", 1e3), ("s", 1e6), ("", 1e3)])
def test_times_are_in_microseconds(unit, microseconds):
    assert trace_of(parse_schedule(PLAN), time_unit=unit)["X"][0]["dur"] == pytest.approx(microseconds)


def test_copies_to_the_host_and_back_have_their_own_tracks():
    plan = "0F0 0F1 0OFFLOAD0 0F2 0RELOAD0 0OFFLOAD1 0B2 0RELOAD1 0B1 0B0\n1F0 1F1 1F2 1B2 1B1 1B0"
    events = trace_of(parse_schedule(plan), offload_times=1.0, time_unit="us")
    names = {event["tid"]: event["args"]["name"] for event in events["M"] if event["name"] == "thread_name"}
    assert (names[0], names[2], names[3], names[4]) == (
        "rank 0",
        "rank 0 to its host",
        "rank 0 from its host",
        "rank 1",
    )
    assert {(event["name"], event["tid"]) for event in events["X"] if "LOAD" in event["cat"]} == {
        ("0OFFLOAD0", 2), ("0OFFLOAD1", 2), ("0RELOAD0", 3), ("0RELOAD1", 3),
    }  # fmt: skip
    levels = [(event["ts"], event["args"]["activations"]) for event in events["C"] if event["name"].endswith("0")]
    assert levels[:6] == [(0, 1), (1, 2), (2, 1), (2, 2), (3, 3), (3, 2)]


@given(schedules())
@settings(max_examples=25)
def test_an_arrow_for_every_transfer(schedule):
    events = trace_of(schedule, memory=False, p2p_time=0.25)
    transfers = int(crosses_ranks(schedule, dependencies(schedule).arrival).sum())
    starts = {event["id"]: event for event in events.get("s", [])}
    ends = {event["id"]: event for event in events.get("f", [])}
    assert len(starts) == len(ends) == transfers
    slices = {(event["tid"], event["ts"]) for event in events["X"]}
    for number, end in ends.items():
        assert (end["tid"], end["ts"]) in slices
        assert starts[number]["ts"] < end["ts"]
        assert starts[number]["tid"] != end["tid"]


@given(schedules())
@settings(max_examples=25)
def test_the_counters_reach_the_peaks_and_end_at_zero(schedule):
    counters = trace_of(schedule)["C"]
    assert len(counters) == int((schedule.columns.kind <= Kind.R).sum())
    peaks = simulate(schedule, Settings().costs(schedule.placement)).memory.peak_activation
    for rank, peak in enumerate(peaks):
        levels = [event["args"]["activations"] for event in counters if event["name"] == f"memory of rank {rank:>3}"]
        assert max(levels) == pytest.approx(peak)
        assert levels[-1] == pytest.approx(0)


def test_memory_in_bytes_has_the_static_ones():
    counters = trace_of(parse_schedule(PLAN), activation_bytes=100, static_bytes=1000)["C"]
    assert [event["args"]["bytes"] for event in counters] == [1100, 1000, 1100, 1000]
