import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.costs import Settings
from pipeplan.formats.zb_nodes import NodeKind, RuntimeNode, format_zb_nodes, zero_bubble_nodes
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import Placement, Timeline, parse_schedule
from pipeplan.simulation import simulate
from pipeplan.strategies import Shape, strategy
from tests.conformance import conformance
from tests.extensions.search.published import model_bytes, times

ONE_MICROBATCH = "0F0 3F0 3I0 3W0 0I0 0W0\n1F0 2F0 2I0 1I0 2W0 1W0"


def timeline_of(text: str, given_settings: Settings, placement: Placement) -> Timeline:
    return simulate(parse_schedule(text, placement=placement), given_settings.costs(placement)).timeline


def v_timeline(ranks: int, microbatches: int, given_settings: Settings) -> Timeline:
    placement = Placement.v(ranks)
    costs, limits = given_settings.costs(placement), given_settings.limits(placement)
    return simulate(strategy("zbv-heuristic")(Shape(ranks, microbatches, 2), costs, limits), costs).timeline


def nodes_of(text: str, placement: Placement) -> tuple[tuple[RuntimeNode, ...], ...]:
    return zero_bubble_nodes(timeline_of(text, Settings(times_per="stage"), placement), 0.0)


def test_one_microbatch_on_two_ranks():
    timed = timeline_of(ONE_MICROBATCH, Settings(times_per="stage", p2p_time=0.5), Placement.v(2))
    assert format_zb_nodes(zero_bubble_nodes(timed, 0.5)).splitlines() == [
        "F.0.0@0 RECV_POST_VALIDATION.0.0@1 POST_VALIDATION.0.0@1 SEND_FORWARD.0.0@1 "
        "RECV_FORWARD.1.0@3.5 F.1.0@4 I.1.0@5 SEND_BACKWARD.1.0@6 W.1.0@6 RECV_BACKWARD.0.0@8.5 I.0.0@9 W.0.0@10",
        "SEND_POST_VALIDATION.0.0@1 POST_VALIDATION.0.0@1 RECV_FORWARD.0.0@1 F.0.0@1.5 F.1.0@2.5 "
        "SEND_FORWARD.1.0@3.5 RECV_BACKWARD.1.0@6 I.1.0@6.5 I.0.0@7.5 SEND_BACKWARD.0.0@8.5 W.1.0@8.5 W.0.0@9.5",
    ]


def test_a_single_rank_validates_alone_and_sends_nothing():
    (row,) = nodes_of("0F0 1F0 1I0 0I0 1W0 0W0", Placement.v(1))
    assert [node.kind for node in row] == [NodeKind.POST_VALIDATION, *"FFIIWW"]


@pytest.mark.parametrize(
    ("text", "placement"),
    [
        ("0F0 0I0 0W0\n1F0 1I0 1W0", Placement.linear(2)),
        ("0F0 3F0 3B0 0B0\n1F0 2F0 2B0 1B0", Placement.v(2)),
        ("0F0 2F0 2I0 0I0 2W0 0W0\n1F0 3F0 3I0 1I0 3W0 1W0", Placement.loop(2, 2)),
    ],
)
def test_only_split_v_schedules_are_taken(text: str, placement: Placement):
    with pytest.raises(ShapeError, match="V schedule of F, I and W on whole sequences"):
        nodes_of(text, placement)


@given(
    st.integers(1, 5),
    st.integers(1, 8),
    st.tuples(*[st.integers(1, 9).map(float)] * 3),
    st.integers(0, 9),
)
@settings(max_examples=40, deadline=None)
def test_every_transfer_has_two_ends_and_comes_before_what_needs_it(
    ranks: int, microbatches: int, op_times: tuple[float, float, float], transfer: int
):
    forward, inputs, weights = op_times
    given_settings = Settings(
        forward_times=forward,
        backward_input_times=inputs,
        backward_weight_times=weights,
        times_per="stage",
        p2p_time=transfer,
    )
    timed = v_timeline(ranks, microbatches, given_settings)
    rows = zero_bubble_nodes(timed, float(transfer))
    for rank, row in enumerate(rows):
        ops = [(node.kind, node.microbatch) for node in row if node.pair is None]
        assert ops == [(op.kind.name, op.microbatch) for op in timed.schedule[rank]]
    ends: dict[int, list[RuntimeNode]] = {}
    for node in itertools.chain(*rows):
        if node.pair is not None:
            ends.setdefault(node.pair, []).append(node)
    numbers = sorted(ends)
    assert numbers == list(range(len(numbers)))
    assert [len(ends[number]) for number in numbers] == [1] * (3 * ranks - 2) + [2] * (len(numbers) - 3 * ranks + 2)
    assert len(numbers) == 3 * ranks - 2 + 4 * (ranks - 1) * microbatches
    for row in rows:
        position = {(node.kind, node.chunk, node.microbatch): place for place, node in enumerate(row)}
        for (kind, *which), place in position.items():
            if kind in (NodeKind.RECV_FORWARD, NodeKind.RECV_BACKWARD):
                needed_by = NodeKind.F if kind == NodeKind.RECV_FORWARD else NodeKind.I
                assert place < position[needed_by, which[0], which[1]]


def test_the_authors_nodes():
    for row in conformance("zbv_communication.json")["rows"]:
        stages = 2 * row["ranks"]
        memory = model_bytes(row["hidden"], row["heads"], row["seq"], stages)
        limit = float(row["memory_limit_chunks"] * memory["activation_bytes"][0])
        given_settings = Settings(**times(row, stages), **memory, memory_limit=limit)
        timed = v_timeline(row["ranks"], row["microbatches"], given_settings)
        assert format_zb_nodes(zero_bubble_nodes(timed, float(row["p2p"]))).splitlines() == row["nodes"]
