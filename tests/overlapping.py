"""Costs whose overlapped pairs take a time of both stages: a list, a table or segments, in whole numbers."""

from __future__ import annotations

from random import Random
from typing import Literal, get_args

from pipeplan.costs import Costs, OpSegments, Segment, Settings
from pipeplan.model import Placement

PairKind = Literal["list", "matrix", "segments"]
PAIR_KINDS = get_args(PairKind)


def overlapping(kind: PairKind, placement: Placement, seed: int) -> Costs:
    """Return random costs of stages that differ."""
    random, stages = Random(f"{kind} {seed}"), placement.stages
    transfer = float(random.choice((0, 0, 1, 2)))
    if kind == "segments":
        segments = tuple(
            OpSegments(
                forward=_segments(random), backward_input=_segments(random), backward_weight=(("compute", 1.0 + stage),)
            )
            for stage in range(stages)
        )
        delayed = random.random() < 0.5
        return Settings(segments=segments, delayed_weights=delayed, p2p_time=transfer).costs(placement)
    forward, inputs, weights = (tuple(float(random.randint(1, 6)) for _ in range(stages)) for _ in range(3))
    full = tuple(max(i, i + w + random.choice((-1, 0, 0, 1))) for i, w in zip(inputs, weights, strict=True))

    def together(one: float, other: float) -> float:
        return float(random.randint(int(max(one, other)), int(one + other)))

    table = tuple(tuple(together(one, other) for other in full) for one in forward)
    alike = tuple(together(one, other) for one, other in zip(forward, full, strict=True))
    return Settings(
        forward_times=forward,
        backward_times=full,
        backward_input_times=inputs,
        backward_weight_times=weights,
        overlap_times=alike if kind == "list" else table,
        p2p_time=transfer,
        times_per="stage",
    ).costs(placement)


def _segments(random: Random) -> tuple[Segment, ...]:
    """Return a computation, and one or two exchanges with a computation behind each."""
    parts: list[Segment] = [("compute", float(random.randint(1, 3)))]
    for _ in range(random.randint(1, 2)):
        parts += [("all_to_all", float(random.randint(0, 3))), ("compute", float(random.randint(1, 3)))]
    return tuple(parts)
