"""A problem as the kernels' arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeplan.model import Floats, Ints, Kind, source_of, tolerances
from pipeplan.solver.kernels.arrays import FlatProblem, Timing
from pipeplan.solver.kernels.wide_arrays import NO_WIDE_PROBLEM, WideProblem, WideTiming

if TYPE_CHECKING:
    from pipeplan.solver.candidate import Encoder


def flatten(encoder: Encoder) -> FlatProblem:
    """The problem of an encoder as the kernels take it."""
    problem = encoder.problem
    source = sources(encoder)
    crosses = (source >= 0) & (encoder.rank_of[source] != encoder.rank_of)
    consumer = np.full(encoder.classes, -1)
    consumer[source[crosses]] = encoder.rank_of[crosses]
    time, weight_time = class_times(encoder)
    growth, weight_growth = _growths(encoder)
    full_time = np.where(encoder.is_forward, time, problem.occupied.backward[encoder.stage_of] / problem.slices)
    held = problem.memory_limit.activation[encoder.stage_of] / problem.slices
    work = np.bincount(encoder.rank_of, weights=encoder.share * encoder.total_times)
    overlap, messages = problem.occupied.overlap, problem.occupied.messages
    limit = problem.memory_limit.limit
    flat = FlatProblem(
        offsets=encoder.offsets,
        work=np.zeros_like(work) if encoder.overlaps else work.astype(np.float64),
        limit=limit + tolerances.SEARCHED_MEMORY * np.maximum(np.where(np.isfinite(limit), limit, 0.0), 1.0),
        rank=encoder.rank_of,
        time=time,
        growth=growth,
        source=source,
        delay=np.where(crosses, problem.occupied.transfer.time(problem.slices), 0.0),
        consumer=consumer,
        first=np.arange(encoder.classes) * encoder.share,
        weight_time=weight_time,
        weight_growth=weight_growth,
        full_time=full_time,
        full_growth=np.where(encoder.is_forward, growth, -held),
        overlap=time if overlap is None else overlap[encoder.stage_of] / problem.slices,
        messages=messages[encoder.stage_of] / problem.slices,
        slices=problem.slices,
    )
    return flat._replace(more=_widen(encoder, flat, crosses) if encoder.is_wide else NO_WIDE_PROBLEM)


def sources(encoder: Encoder) -> Ints:
    """The class each class waits for, -1 for none; shape (classes,)."""
    found = np.full((encoder.copies, encoder.stages, 2), -1, np.int64)
    first = 2 * encoder.stages * np.arange(encoder.copies)
    for stage in range(encoder.stages):
        for backward, kind in enumerate((Kind.F, Kind.I)):
            if (source := source_of(kind, stage, encoder.stages)) is not None:
                found[:, stage, backward] = first + 2 * source[1] + (source[0] is Kind.I)
    return found.ravel()


def class_times(encoder: Encoder) -> tuple[Floats, Floats]:
    """How long each class takes, and its W: below 0 where there is none; shape (classes,) each."""
    problem, stage = encoder.problem, encoder.stage_of
    costs, split = problem.occupied, problem.split_backward
    backward = (costs.backward_input if split else costs.backward)[stage]
    times = np.where(encoder.is_forward, costs.forward[stage], backward) / problem.slices
    return times, np.where(encoder.is_forward | (not split), -1.0, costs.backward_weight[stage] / problem.slices)


def _growths(encoder: Encoder) -> tuple[Floats, Floats]:
    rule, split = encoder.problem.memory_limit, encoder.problem.split_backward
    held = rule.activation[encoder.stage_of] / encoder.problem.slices
    freed = rule.freed_by_weight[encoder.stage_of] / encoder.problem.slices
    kept = freed if split else np.zeros(encoder.classes)
    return np.where(encoder.is_forward, held, kept - held), -kept


def _widen(encoder: Encoder, flat: FlatProblem, crosses: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> WideProblem:
    problem, stage = encoder.problem, encoder.stage_of
    sending, link = np.zeros(encoder.classes), np.full(encoder.classes, -1)
    sending[flat.source[crosses]] = flat.delay[crosses]
    if problem.communication == "contended":
        ends = encoder.rank_of[flat.source[crosses]] * problem.placement.ranks + encoder.rank_of[crosses]
        link[flat.source[crosses]] = np.unique(ends, return_inverse=True)[1]
    nothing = np.zeros(encoder.classes)
    choices, slices = problem.choices, problem.slices
    copying = problem.occupied.require_offload()[stage] / slices if choices.offload else nothing
    factors, least = _factors(encoder)
    return WideProblem(
        recomputing=problem.occupied.recompute[stage] / slices,
        recompute_keeps=problem.memory_limit.recompute_keeps[stage] / slices if encoder.decides_mode else nothing,
        copying=copying,
        offloaded=problem.memory_limit.offloaded[stage] / slices if encoder.decides_mode else nothing,
        sending=sending,
        link=link,
        modes=np.array([1, choices.recompute, choices.offload], np.int64),
        factors=factors,
        least_factor=least,
    )


def _factors(encoder: Encoder) -> tuple[Floats, Floats]:
    """The scenarios' factors by op, and the least of each rank, as the kernel has them."""
    scenarios = encoder.scenarios
    if scenarios is None:
        return np.zeros(0), np.zeros(0)
    slices = encoder.problem.slices
    op_class, index = np.divmod(np.arange(encoder.positions), encoder.share)
    microbatch = encoder.microbatch_of(op_class, index)
    part = encoder.slice_of(op_class, index) if slices > 1 else 0
    stage, backward = encoder.stage_of[op_class], op_class % 2
    rows = [scenarios.factors[kind, stage, microbatch, part] for kind in (backward, 2, 3)]
    factors = np.moveaxis(np.stack(rows), -1, 0)
    least = np.full((scenarios.runs, encoder.problem.placement.ranks), np.inf)
    for row in range(2):
        for rank in range(least.shape[1]):
            here = factors[:, row, encoder.rank_of[op_class] == rank]
            least[:, rank] = np.minimum(least[:, rank], here.min(axis=1))
    return factors.ravel(), least.ravel()


def room_for_timing(encoder: Encoder) -> Timing:
    """Room for the kernels that time a candidate."""
    ranks, classes, positions = len(encoder.offsets) - 1, encoder.classes, encoder.positions
    by_rank = [np.zeros(ranks, np.int64) for _ in range(4)]
    real = [np.zeros(ranks) for _ in range(4)]
    by_place = [np.zeros(positions, np.int64) for _ in range(4)]
    timing = Timing(
        cursor=by_rank[0],
        pending=by_rank[1],
        owed=by_rank[2],
        clock=real[0],
        held=real[1],
        left=real[2],
        begin=real[3],
        stack=by_rank[3],
        done=np.zeros(classes, np.int64),
        waiting=np.zeros(classes, np.int64),
        finish=np.zeros(classes * encoder.share),
        weights=by_place[0],
        owes=by_place[1],
        waited=by_place[2],
        position=by_place[3],
    )
    return timing._replace(more=_room_for_more(encoder)) if encoder.is_wide else timing


def _room_for_more(encoder: Encoder) -> WideTiming:
    ranks, positions = len(encoder.offsets) - 1, encoder.positions
    scenarios = encoder.scenarios
    by_rank = [np.zeros(ranks, np.int64) for _ in range(4)]
    by_place = [np.zeros(positions, np.int64) for _ in range(6)]
    return WideTiming(
        begun=by_rank[0],
        queued=by_rank[1],
        left_in=by_rank[2],
        ahead=by_rank[3],
        out_free=np.zeros(ranks),
        in_free=np.zeros(ranks),
        looked=np.zeros(encoder.classes, np.int64),
        link_free=np.zeros(int(encoder.flat.more.link.max(initial=-1)) + 1),
        ran=by_place[0],
        op_at=by_place[1],
        queue=by_place[2],
        offloads=by_place[3],
        reloads=by_place[4],
        copied=np.zeros(positions),
        returned=np.zeros(positions),
        gone=by_place[5],
        values=np.zeros(0 if scenarios is None else scenarios.runs),
    )
