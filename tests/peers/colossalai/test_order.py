"""ColossalAI's ``PipelineGraph``, the zero-bubble authors' V heuristic with its communication, executed beside ours."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from colossalai.pipeline.schedule.v_schedule import PipelineGraph, ScheduledNode

from pipeplan.costs import Settings
from pipeplan.formats.zb_nodes import NodeKind, RuntimeNode, zero_bubble_nodes
from pipeplan.foundation.errors import InfeasibleError
from pipeplan.model import Placement
from pipeplan.simulation import simulate
from pipeplan.strategies import Shape, strategy

SHAPES = 800


@dataclass(frozen=True, slots=True)
class Case:
    """A shape, whole times of F, I, W and a transfer, and bytes a chunk: held by F, kept by W alone, and the limit."""

    ranks: int
    microbatches: int
    forward: int
    backward_input: int
    backward_weight: int
    transfer: int
    held: int
    kept: int
    limit: int


def cases(seed: int, count: int, room: tuple[int, int] = (2, 4)) -> list[Case]:
    """Random ones, with limits between ``room`` chunk activations a rank: 2p chunks are the least that any costs need."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        ranks = draw.randint(2, 6)
        held = draw.randint(2, 12)
        found.append(
            Case(
                ranks=ranks,
                microbatches=draw.randint(1, 3 * ranks),
                forward=draw.randint(1, 30),
                backward_input=draw.randint(1, 30),
                backward_weight=draw.randint(1, 30),
                transfer=draw.choice([0, 0, 1, draw.randint(1, 10)]),
                held=held,
                kept=draw.randint(0, held),
                limit=draw.randint(room[0] * ranks * held, room[1] * ranks * held),
            )
        )
    return found


def theirs(case: Case) -> list[list[RuntimeNode]]:
    graph = PipelineGraph(
        case.ranks,
        case.microbatches,
        case.forward,
        case.backward_input,
        case.backward_weight,
        case.transfer,
        case.held,
        case.kept - case.held,
        -case.kept,
        case.limit,
    )
    return [[in_our_words(node) for node in row] for row in graph.get_v_schedule()]


def in_our_words(node: ScheduledNode) -> RuntimeNode:
    """Their B is the backward for the inputs; pairs of transfers are not told."""
    kind = NodeKind.I if node.type == "B" else NodeKind(node.type)
    return RuntimeNode(kind, node.chunk, node.minibatch, node.start_time, node.completion_time, rollback=node.rollback)


def ours(case: Case) -> list[list[RuntimeNode]]:
    placement = Placement.v(case.ranks)
    each: dict[str, Any] = {
        "times_per": "stage",
        "forward_times": float(case.forward),
        "backward_input_times": float(case.backward_input),
        "backward_weight_times": float(case.backward_weight),
        "p2p_time": float(case.transfer),
        "activation_bytes": 2.0 * case.held,
        "weight_activation_bytes": 2.0 * case.kept,
        "memory_limit": float(case.limit),
    }
    settings = Settings(**each)
    costs = settings.costs(placement)
    shape = Shape(case.ranks, case.microbatches, chunks=2)
    timeline = simulate(strategy("zbv-heuristic")(shape, costs, settings.limits(placement)), costs).timeline
    rows = zero_bubble_nodes(timeline, costs.transfer.time())
    return [[without_pair(node) for node in row] for row in rows]


def without_pair(node: RuntimeNode) -> RuntimeNode:
    return RuntimeNode(node.kind, node.chunk, node.microbatch, node.time, node.end, rollback=node.rollback)


def test_the_same_nodes_at_the_same_times(ran: Callable[[str], None]) -> None:
    """Ops, transfers, validations and rollback marks in their order, with start and end, under memory limits."""
    different = [case for case in cases(seed=11, count=SHAPES) if ours(case) != theirs(case)]
    assert different == []
    ran(f"PipelineGraph against zbv-heuristic and zb-nodes, node by node with times and limits: {SHAPES} shapes")


def test_limits_too_small_are_refused_by_both(ran: Callable[[str], None]) -> None:
    """Where ours finds no room, their placing asserts, and nowhere else; what has room is the same."""
    small = cases(seed=12, count=SHAPES // 2, room=(1, 2))
    refused = [case for case in small if refuses(ours, case, InfeasibleError)]
    assert refused == [case for case in small if refuses(theirs, case, AssertionError)]
    assert 0 < len(refused) < len(small)
    assert [case for case in small if case not in refused and ours(case) != theirs(case)] == []
    ran(f"memory limits around the least: both refuse the same {len(refused)} of {len(small)}")


def refuses(build: Callable[[Case], object], case: Case, error: type[Exception]) -> bool:
    try:
        build(case)
    except error:
        return True
    return False
