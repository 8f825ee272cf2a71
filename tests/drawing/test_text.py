import re

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeplan import simulate
from pipeplan.drawing import LIGHT, order_of, text_of, view_of
from pipeplan.model import Kind
from tests.drawing.examples import one_f_one_b, overlapped, view_named

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def plain(text: str) -> list[str]:
    return [line.rstrip() for line in ESCAPE.sub("", text).splitlines()]


def test_plain_text_is_exact_and_named():
    assert text_of(view_of(one_f_one_b())).splitlines() == [
        "1f1b: simulated, makespan 9, bubble 33.3%",
        "rank 0 F0F1....B0--..B1--",
        "rank 1 ..F0B0--F1B1--....",
        "       |0        |5",
        "F forward  B backward  . idle",
    ]


def test_colored_text_has_a_cell_a_unit_of_time():
    text = text_of(view_of(one_f_one_b()), color=True)
    assert plain(text)[1:3] == ["rank 0 F0F1····B0  ··B1", "rank 1 ··F0B0  F1B1  ····"]
    forward = "48;2;" + ";".join(str(int(LIGHT.shades(Kind.F, 1)[0][at : at + 2], 16)) for at in (1, 3, 5))
    assert text.splitlines()[1].count(forward) == 1


def test_overlapped_pairs_have_two_lines():
    assert text_of(view_of(overlapped())).splitlines()[1:3] == [
        "rank 0 F0F1F2----B1--B2--",
        "       ----B0----" + "--------",
    ]


@settings(max_examples=20, deadline=None)
@given(width=st.integers(12, 150), color=st.booleans(), name=st.sampled_from(["1f1b", "zb-h1", "dualpipe"]))
def test_text_is_never_wider_than_asked_for(width, color, name):
    lines = plain(text_of(view_named(name, 4, 12), width=width, color=color))
    assert max(map(len, lines)) <= width


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(["1f1b", "zbv", "interleaved-1f1b", "zb-h1"]),
    microbatches=st.integers(8, 40),
    times=st.tuples(*[st.integers(1, 9)] * 3) | st.tuples(*[st.floats(0.1, 3.0)] * 3),
    p2p_time=st.sampled_from([0.0, 0.25, 1.3]),
    width=st.integers(20, 160),
)
@example("zbv", 24, (1, 1, 1), 0.0, 40)
@example("zbv", 24, (1, 1, 1), 0.0, 80)
@example("zbv", 24, (1, 1, 1), 0.0, 100)
def test_a_cell_is_idle_only_if_the_rank_is_idle_for_most_of_it(name, microbatches, times, p2p_time, width):
    costs = dict(zip(("forward_times", "backward_input_times", "backward_weight_times"), times, strict=True))
    timeline = simulate(name, ranks=4, microbatches=microbatches, p2p_time=p2p_time, **costs).timeline
    rows = [line.split()[-1] for line in text_of(view_of(timeline), width=width).splitlines()[1:5]]
    for rank, row in enumerate(rows):
        cell = timeline.makespan / len(row)
        edges = np.arange(len(row) + 1) * cell
        ops = slice(*timeline.schedule.offsets[rank : rank + 2])
        start, end = timeline.start[ops], timeline.end[ops]
        shares = np.minimum(edges[1:, None], end) - np.maximum(edges[:-1, None], start)
        busy = np.maximum(shares, 0).sum(axis=1)
        for column, letter in enumerate(row):
            assert letter != "." or busy[column] < 0.5 * cell + 1e-6, (row, column)
        # A gap of two cells or more is seen.
        for gap, (until, since) in enumerate(zip(end[:-1], start[1:], strict=True)):
            if since - until > 2 * cell:
                assert "." in row[int(until / cell) : int(since / cell) + 1], (row, gap)


def test_of_many_ranks_the_first_and_the_last_are_shown():
    lines = text_of(view_named("1f1b", 100, 4), max_lanes=6).splitlines()
    assert [line.split()[1] for line in lines if line.startswith("rank")] == ["0", "1", "2", "97", "98", "99"]
    assert "... 94 more: rank 3 to rank 96" in lines


def test_an_order_says_that_it_has_no_times():
    lines = text_of(order_of(one_f_one_b().schedule)).splitlines()
    assert lines[0] == "1f1b: order of ops, without times"
    assert lines[1:3] == ["rank 0 F0F1B0B1", "rank 1 F0B0F1B1"]
