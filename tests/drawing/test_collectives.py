"""Collectives of sharded stages in pictures and traces: along the top of a lane, and in the memory."""

import json
from typing import Any

from pipeplan.costs import Settings
from pipeplan.drawing import LIGHT, LanePart, View, view_of
from pipeplan.drawing.axes import legend_entries
from pipeplan.formats.trace import chrome_trace
from pipeplan.model import Kind, MemoryUse, Timeline, parse_schedule
from pipeplan.simulation import idle_times, memory_use, simulate

PLAN = "0UNSHARD 0F0 0RESHARD 0UNSHARD 0B0 0REDUCE_GRAD 0WAIT_REDUCE_GRAD 0F1 0B1 0RESHARD"


def run(**times: Any) -> tuple[Timeline, MemoryUse, View]:
    schedule = parse_schedule(PLAN)
    settings = Settings(parameter_bytes=4.0, gradient_bytes=2.0, activation_bytes=1.0, static_bytes=8.0, **times)
    costs = settings.costs(schedule.placement)
    timeline, memory = simulate(schedule, costs).timeline, memory_use(schedule, costs)
    return timeline, memory, view_of(timeline, memory, reasons=idle_times(timeline, costs).drawn)


def test_collectives_that_take_time_have_a_strip_of_their_own():
    cases: list[tuple[dict[str, float], LanePart]] = [
        ({}, LanePart.STRIP),
        ({"unshard_times": 0.5}, LanePart.COLLECTIVE),
    ]
    for times, part in cases:
        bars = run(**times)[2].bars
        assert bars.part[bars.kind == Kind.UNSHARD].tolist() == [part, part]
        assert bars.part[bars.kind == Kind.RESHARD].tolist() == [LanePart.STRIP] * 2


def test_the_first_op_after_a_collective_waits_for_it():
    view = run(unshard_times=0.5, reduce_times=1.0)[2]
    links = view.links
    beside = links.why == 3
    pairs = list(zip(links.source[beside].tolist(), links.target[beside].tolist(), strict=True))
    # The forward behind WAIT_REDUCE_GRAD waits for the reduction as well.
    assert pairs == [(0, 1), (3, 4), (5, 6), (5, 7)]
    assert not (run()[2].links.why == 3).any()


def test_the_memory_shows_gathered_parameters():
    curves = run(unshard_times=0.5, reduce_times=1.0)[2].memory
    assert curves is not None
    assert curves.parameters is not None
    steps = list(zip(curves.time.tolist(), curves.level.tolist(), curves.parameters.tolist(), strict=True))
    # F0 runs from 0.5 to 1.5, B0 from 2 to 4, its gradients are reduced until 5, and F1 and B1 follow.
    # Gradients are there from the start of B0, and again of B1, on.
    assert steps == [(0, 12, 4), (0.5, 13, 4), (1.5, 13, 4), (2, 15, 4), (4, 14, 4), (5, 13, 4), (6, 15, 4), (8, 10, 0)]
    assert curves.to_json_dict()["parameters"] == curves.parameters.tolist()


def test_a_gap_names_the_collective():
    gaps = run(unshard_times=0.5, reduce_times=1.0)[2].gaps
    assert gaps is not None
    assert [gaps.reasons[code] for code in gaps.reason.tolist()] == ["unshard", "unshard", "reduce"]
    assert gaps.cause.tolist() == [0, 3, 5]


def test_a_trace_has_a_track_of_collectives():
    timeline, memory, _ = run(unshard_times=0.5)
    events = json.loads(chrome_trace(timeline, memory))["traceEvents"]
    tracks = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert tracks == {0: "rank 0", 1: "rank 0 communication", 4: "rank 0 collectives"}
    assert {event["tid"] for event in events if event.get("cat") == "UNSHARD"} == {4}
    levels = [event["args"] for event in events if event["ph"] == "C"]
    assert levels[0] == {"parameters": 4.0, "other bytes": 8.0}


def test_gathering_and_freeing_share_an_entry_of_the_legend():
    titles = [entry.title for entry in legend_entries([run(unshard_times=0.5)[2]], LIGHT)]
    assert "unshard, reshard" in titles
    assert "reshard" not in titles
