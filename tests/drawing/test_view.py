import json

import numpy as np
import pytest

from pipeplan.costs import Limits, Settings
from pipeplan.drawing import LanePart, order_of, view_of
from pipeplan.drawing.view import bar_names
from pipeplan.model import Kind, Reason, Timeline, parse_schedule
from pipeplan.passes import insert_communication
from pipeplan.simulation import idle_times, memory_use, simulate
from tests.drawing.examples import ONE_F_ONE_B, costs_for, one_f_one_b, overlapped, schedule_named

LIMIT = Limits(np.full(2, 2.0), in_activations=True)


def test_overlapped_pairs_share_their_time_in_two_halves():
    bars = view_of(overlapped()).bars
    assert bars.part.tolist() == [
        LanePart.FULL,
        LanePart.FULL,
        LanePart.UPPER,
        LanePart.LOWER,
        LanePart.FULL,
        LanePart.FULL,
    ]
    assert bars.start[2] == bars.start[3]
    assert bars.end[2] == bars.end[3]


def test_chunks_and_directions_have_shades_of_their_own():
    interleaved = order_of(schedule_named("interleaved-1f1b", 2, 4, 2))
    first = interleaved.bars.lane == 0
    assert dict(zip(interleaved.bars.stage[first].tolist(), interleaved.shade[first].tolist(), strict=True)) == {
        0: 0,
        2: 1,
    }
    both = order_of(schedule_named("dualpipe", 4, 8))
    assert (both.chunks, both.copies) == (1, 2)
    assert np.array_equal(both.shade, both.bars.microbatch >= 4)


def test_links_are_the_dependencies():
    view = view_of(one_f_one_b())
    named = bar_names(view.bars, range(8))
    links = {
        (named[source], named[target], why)
        for source, target, why in zip(
            view.links.source.tolist(), view.links.target.tolist(), view.links.why.tolist(), strict=True
        )
    }
    arrivals = {("0F0", "1F0", 0), ("0F1", "1F1", 0), ("1B0", "0B0", 0), ("1B1", "0B1", 0)}
    own = {(f"{stage}F{microbatch}", f"{stage}B{microbatch}", 1) for stage in (0, 1) for microbatch in (0, 1)}
    assert links == arrivals | own


def test_memory_counts_forwards_from_their_start_and_backwards_from_their_end():
    timeline = one_f_one_b()
    memory = memory_use(timeline.schedule, costs_for(timeline.schedule.placement))
    curves = view_of(timeline, memory).memory
    assert curves is not None
    assert (curves.unit, curves.limit) == ("activations", None)
    assert [column.tolist() for column in curves.of(0)] == [[0, 1, 6, 9], [1, 2, 1, 0]]
    assert [column.tolist() for column in curves.of(1)] == [[0, 1, 4, 7], [0, 1, 1, 0]]
    assert curves.peak.tolist() == [2, 1]


def test_memory_in_bytes_stands_on_what_is_static():
    timeline = one_f_one_b()
    settings = Settings(activation_bytes=100.0, static_bytes=1000.0, memory_limit="1200B")
    placement = timeline.schedule.placement
    memory = memory_use(timeline.schedule, settings.costs(placement))
    curves = view_of(timeline, memory, limit=settings.limits(placement)).memory
    assert curves is not None
    assert curves.unit == "bytes"
    assert [column.tolist() for column in curves.of(1)] == [[0, 1, 4, 7], [1000, 1100, 1100, 1000]]
    assert curves.peak.tolist() == [1200, 1100]
    assert curves.limit is not None
    assert curves.limit.tolist() == [1200, 1200]


def test_gaps_hold_the_reasons_and_point_at_bars():
    schedule = insert_communication(parse_schedule(ONE_F_ONE_B))
    costs = costs_for(schedule.placement, p2p_time=0.5)
    timeline = simulate(schedule, costs).timeline
    view = view_of(timeline, reasons=idle_times(timeline, costs).drawn)
    assert view.gaps is not None
    assert np.bincount(view.gaps.lane, view.gaps.end - view.gaps.start) == pytest.approx(timeline.idle)
    causes = view.gaps.cause[view.gaps.cause >= 0]
    assert len(causes)
    assert (schedule.columns.kind[causes] <= Kind.R).all()


def test_an_order_gives_each_op_one_place_and_a_pair_one_together():
    view = order_of(overlapped().schedule)
    assert view.source == "order"
    assert view.bars.start.tolist() == [0, 1, 2, 2, 3, 4]
    two_ranks = order_of(parse_schedule(ONE_F_ONE_B))
    assert two_ranks.bars.end.tolist() == [1, 2, 3, 4, 1, 2, 3, 4]


def test_json_is_the_contract():
    timeline = one_f_one_b()
    costs = costs_for(timeline.schedule.placement)
    view = view_of(
        timeline, memory_use(timeline.schedule, costs), limit=LIMIT, reasons=idle_times(timeline, costs).drawn
    )
    written = json.loads(json.dumps(view.to_json_dict(), allow_nan=False))
    assert written["version"] == 1
    assert (written["source"], written["makespan"], written["chunks"], written["copies"]) == ("simulated", 9, 1, 1)
    assert written["kinds"][:5] == ["F", "B", "I", "W", "R"]
    assert written["parts"] == ["full", "upper", "lower", "strip", "to_host", "from_host", "collective"]
    assert written["waits"] == ["arrival", "own_stage", "previous_slice", "collective"]
    assert written["idle_over_total"] == pytest.approx(1 - 12 / 18)
    lanes = {"label": ["rank 0", "rank 1"], "first_start": [0, 1], "last_end": [9, 7], "work": [6, 6]}
    assert written["lanes"] == lanes
    assert written["bars"] == {
        "lane": [0, 0, 0, 0, 1, 1, 1, 1],
        "start": [0, 1, 4, 7, 1, 2, 4, 5],
        "end": [1, 2, 6, 9, 2, 4, 5, 7],
        "part": [0] * 8,
        "kind": [0, 0, 1, 1, 0, 1, 0, 1],
        "chunk": [0] * 8,
        "copy": [0] * 8,
        "stage": [0, 0, 0, 0, 1, 1, 1, 1],
        "microbatch": [0, 1, 0, 1, 0, 0, 1, 1],
        "slice": [0] * 8,
        "group": [-1] * 8,
    }
    assert set(written["links"]) == {"source", "target", "why"}
    assert written["memory"]["offsets"] == [0, 4, 8]
    assert written["memory"]["limit"] == [2, 2]
    assert written["memory"]["parameters"] is None
    assert written["gaps"]["reasons"] == [reason.key for reason in Reason]
    assert {len(written["gaps"][name]) for name in ("lane", "start", "end", "reason", "cause")} == {
        len(written["gaps"]["lane"])
    }


def test_an_empty_rank_is_an_empty_lane():
    schedule = parse_schedule("0F0 0B0\n1F0 1B0")
    empty = schedule.keep(np.zeros(4, np.bool_))
    timeline = Timeline(empty, np.zeros(0), np.zeros(0))
    memory = memory_use(empty, costs_for(empty.placement))
    curves = view_of(timeline, memory).memory
    assert curves is not None
    assert curves.level.tolist() == [0, 0]
