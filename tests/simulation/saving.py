"""Random schedules in which some microbatches are recomputed and others copied to the host and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from pipeplan.costs import Costs, Settings
from pipeplan.model import BACKWARD_KINDS, Columns, Kind, Op, Schedule, from_ops
from pipeplan.strategies import STRATEGIES
from tests.passes.plans import even_plan


def saving(schedule: Schedule, random: np.random.Generator, *, recomputed: float, offloaded: float) -> Schedule:
    """The schedule with these shares of all microbatches recomputed and offloaded, each R, OFFLOAD and RELOAD anywhere."""
    return Schedule.from_rows(
        schedule.placement,
        schedule.microbatches,
        [_row(schedule[rank], random, recomputed, offloaded) for rank in range(schedule.ranks)],
        slices=schedule.slices,
        name=schedule.name,
    )


def _row(row: tuple[Op, ...], random: np.random.Generator, recomputed: float, offloaded: float) -> Columns:
    placed = [(float(number), op) for number, op in enumerate(row)]
    forwards = {(op.stage, op.microbatch, op.slice): number for number, op in enumerate(row) if op.kind == Kind.F}
    for number, op in enumerate(row):
        what = op.stage, op.microbatch, op.slice
        if op.kind not in BACKWARD_KINDS or (choice := random.random()) > recomputed + offloaded:
            continue
        # Between two ops, and not between the two of a pair.
        cuts = [
            cut
            for cut in range(forwards[what] + 1, number + 1)
            if row[cut].group == -1 or row[cut].group != row[cut - 1].group
        ]
        if not cuts:
            continue
        kinds = [Kind.R] if choice < recomputed else [Kind.OFFLOAD, Kind.RELOAD]
        spots = sorted(float(random.choice(cuts)) - random.uniform(0.1, 0.9) for _ in kinds)
        placed += [(spot, Op(kind, *what)) for spot, kind in zip(spots, kinds, strict=True)]
    return from_ops(op for _, op in sorted(placed, key=lambda place: place[0]))


@st.composite
def saving_problems(draw: st.DrawFn) -> tuple[Schedule, Costs]:
    """A published schedule with random recomputations and offloads, on random costs."""
    keeping = sorted(name for name, rule in STRATEGIES.items() if not rule.recomputes)
    name, ranks = draw(st.sampled_from(keeping)), 2 * draw(st.integers(1, 3))
    plan = even_plan(name, ranks, 2 * draw(st.integers(ranks, ranks + 2)))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    schedule = saving(plan, random, recomputed=draw(st.sampled_from([0.0, 0.3])), offloaded=draw(st.floats(0.05, 0.7)))
    forward, inputs, weights, copies = (tuple(random.uniform(0.25, 4, plan.stages).tolist()) for _ in range(4))
    overlap = tuple(max(f, i + w) * 1.1 for f, i, w in zip(forward, inputs, weights, strict=True))
    chosen = Settings(
        forward_times=forward,
        backward_input_times=inputs,
        backward_weight_times=weights,
        recompute_times=tuple(random.uniform(0.25, 4, plan.stages).tolist()),
        offload_times=copies,
        overlap_times=draw(st.sampled_from([None, overlap])),
        p2p_time=draw(st.just(0.0) | st.floats(0.01, 2)),
        op_gap=draw(st.sampled_from([0.0, 0.3])),
        message_time=draw(st.sampled_from([0.0, 0.2])),
    )
    return schedule, parts_of_memory(chosen.costs(plan.placement), keeps=draw(st.sampled_from([0.0, 0.25])))


def parts_of_memory(costs: Costs, *, keeps: float, moved: float = 0.75) -> Costs:
    """The costs with a part of every activation kept by recomputed forwards, and one moved by offloads."""
    held = costs.memory.activation
    return replace(costs, memory=replace(costs.memory, recompute_keeps=keeps * held, offloaded=moved * held))
