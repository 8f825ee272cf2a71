"""What ranks must hold where microbatches may be recomputed or offloaded, and first answers to which of them are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from pipeplan.kernels import Kernel
from pipeplan.model import Floats, Ints, tolerances
from pipeplan.solver.kernels.arrays import KEPT, OFFLOADED, RECOMPUTED, SEARCH_COMPILES_AFTER, Decisions
from pipeplan.solver.kernels.keeping_kernel import keep_what_fits

if TYPE_CHECKING:
    from pipeplan.solver.candidate import Candidate, Encoder
    from pipeplan.solver.problem import Problem

_KEEP_WHAT_FITS = Kernel(keep_what_fits, SEARCH_COMPILES_AFTER)

LINK_SHARES = (np.inf, 1.0, 0.5, 0.0)
"""For which parts of a rank's work its link may be busy with copies to the host, where both are allowed."""

LEADS = (0, 1, 2, 4, 8, 16)
"""How many places ahead of their backwards microbatches are fetched back, in first answers."""

MOST_WORK = 20_000_000
"""Op evaluations for finding what is recomputed or offloaded for nothing."""

FEW_STAGES = 10
"""Stages of a rank up to which every set of them is looked at."""


def least_held(problem: Problem) -> Floats:
    """What each rank holds at least with one microbatch alone, shape (ranks,), in the unit of the limits; nothing static.

    It passes through all the stages of a rank before the first of its backwards there. Each of them then holds all of the
    activation, what a recomputation starts from, or what an offload leaves; before its backward it holds all again.
    """
    rule, choices = problem.memory_limit, problem.choices
    rests = [rule.activation]
    if choices.recompute:
        rests.append(rule.recompute_keeps)
    if choices.offload:
        rests.append(rule.activation - rule.offloaded)
    rest = np.minimum.reduce(rests)
    needs = np.zeros(problem.placement.ranks)
    for ranks in problem.placement.table:
        held = np.zeros_like(needs)
        for stage, rank in enumerate(ranks):
            needs[rank] = max(needs[rank], held[rank] + rule.activation[stage])
            held[rank] += rest[stage]
    return needs


def forced_recomputation(problem: Problem) -> Floats:
    """How long each rank must recompute at least for one microbatch of each copy, shape (ranks,).

    Before the first of its backwards on a rank a microbatch holds something of every stage there. What may not all be kept
    is recomputed, where nothing else is allowed: the cheapest stages that make room enough.
    """
    placement, rule, choices = problem.placement, problem.memory_limit, problem.choices
    forced = np.zeros(placement.ranks)
    if not choices.recompute or choices.offload:
        return forced
    for ranks in placement.table:
        for rank in range(placement.ranks):
            stages = np.flatnonzero(ranks == rank)
            excess = rule.activation[stages].sum() - rule.limit[rank] * (1 + tolerances.MEMORY)
            if excess > 0:
                freed = (rule.activation - rule.recompute_keeps)[stages]
                forced[rank] += _least_time(
                    problem.occupied.recompute[stages], freed, float(excess), whole=problem.slices == 1
                )
    return forced


def _least_time(times: Floats, freed: Floats, excess: float, *, whole: bool) -> float:
    """The least time of stages that free so much together; of many stages the last one may count in part.

    So it may where sequences are cut: some slices of a stage are recomputed then, and some are not.
    """
    if whole and len(times) <= FEW_STAGES:
        sets = (list(one) for size in range(len(times) + 1) for one in combinations(range(len(times)), size))
        return min((float(times[one].sum()) for one in sets if freed[one].sum() >= excess), default=0.0)
    order = np.argsort(times / np.maximum(freed, tolerances.LAST_DIGITS))
    missing = np.clip(excess - np.concatenate(([0.0], np.cumsum(freed[order])[:-1])), 0.0, freed[order])
    parts = np.divide(missing, freed[order], out=np.zeros(len(order)), where=missing > 0)
    return float((parts * times[order]).sum())


def first_answers(encoder: Encoder, decisions: Decisions) -> Iterator[Decisions]:
    """The same decisions with modes that fit, or may: as little recomputed or offloaded as need be, and everything."""
    choices, positions = encoder.problem.choices, encoder.positions
    shares = LINK_SHARES if choices.recompute and choices.offload else (np.inf if choices.offload else 0.0,)
    work = np.bincount(encoder.rank_of, weights=encoder.share * encoder.total_times)
    for share in shares:
        trial = decisions._replace(mode=np.zeros(positions, np.int64), lead=np.zeros(positions, np.int64))
        room = [np.zeros(size, np.int64) for size in (positions, encoder.classes, positions)]
        busy = share * work
        if _KEEP_WHAT_FITS((encoder.flat, busy), (trial, *room), work=4 * positions):
            yield from _with_leads(trial)
    modes = _least_modes(encoder.problem)[encoder.stage_of]
    yield from _with_leads(decisions._replace(mode=np.repeat(modes, encoder.share), lead=np.zeros(positions, np.int64)))


def keep_what_can_be(encoder: Encoder, candidate: Candidate) -> Candidate:
    """The candidate with everything kept that is recomputed or offloaded for nothing: without it, it fits and is as fast.

    Annealing does not see such copies and recomputations. All are tried at once, and then halves of what failed, until each
    was tried alone or so many evaluations are made as take less than a second.
    """
    decisions, value = candidate.copy().decisions, candidate.value
    left = MOST_WORK // encoder.positions
    untried = [np.flatnonzero(decisions.mode != KEPT)]
    while untried and left > 0:
        ops = untried.pop()
        modes = decisions.mode[ops]
        decisions.mode[ops] = KEPT
        found, left = encoder.timed(decisions)[0], left - 1
        if found <= value * (1 + tolerances.LAST_DIGITS):
            value = min(value, found)
            continue
        decisions.mode[ops] = modes
        untried += [half for half in np.array_split(ops, 2) if len(ops) > 1]
    return encoder.evaluate(decisions)


def _with_leads(decisions: Decisions) -> Iterator[Decisions]:
    """The decisions with each of the first leads, where anything is fetched back."""
    for lead in LEADS if (decisions.mode == OFFLOADED).any() else (0,):
        yield decisions._replace(lead=np.full_like(decisions.lead, lead))


def _least_modes(problem: Problem) -> Ints:
    """The mode in which each stage holds least between a forward and its backward, shape (stages,)."""
    choices, rule = problem.choices, problem.memory_limit
    modes = [mode for mode, may in ((RECOMPUTED, choices.recompute), (OFFLOADED, choices.offload)) if may]
    rests = {RECOMPUTED: rule.recompute_keeps, OFFLOADED: rule.activation - rule.offloaded}
    which = np.argmin([rests[mode] for mode in modes], axis=0)
    least: Ints = np.array(modes, np.int64)[which]
    return least
