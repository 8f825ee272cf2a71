"""Answers of a search over layouts beside its schedule: the results of every placement, or why no layout fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np

from pipeplan.extensions.search import PlacementTried, Published
from pipeplan.extensions.search.joint.entries import Branch, LayoutEntry
from pipeplan.foundation.readable import memory_text, size_text
from pipeplan.model import counted


def nothing_fits(branches: Sequence[Branch]) -> str:
    """Return why no layout fits, with the least limit of the layouts that were tried."""
    needs: list[tuple[float, Branch]] = []
    for branch in branches:
        layout = branch.proposals.least_bound(branch.space.balanced())
        free = branch.space.problem_of(layout)
        assert branch.space.limits is not None
        unlimited = replace(branch.space.limits, values=np.full_like(branch.space.limits.values, np.inf))
        needs.append((float(replace(free, limits=unlimited).least_limit.max()), branch))
    least, branch = min(needs, key=itemgetter(0))
    space, limits = branch.space, branch.space.limits
    assert limits is not None
    needed = memory_text(least, in_activations=True) if limits.in_activations else size_text(least, up=True)
    return (
        f"found no layout of {counted(len(space.layers), 'layer')} on {counted(space.placement.ranks, 'rank')} that has "
        f"room for one microbatch: the best one needs {needed} on its fullest rank, and the limit is "
        f"{memory_text(float(limits.values.max()), in_activations=limits.in_activations)}"
    )


def placements_tried(branches: Sequence[Branch]) -> tuple[PlacementTried, ...]:
    """Return the bound, the best value and its layout for each placement of which some layout fits."""
    return tuple(
        PlacementTried(
            branch.space.placement,
            branch.bound.value,
            None if best is None else best.judged,
            layout=None if best is None else best.layout,
        )
        for branch in branches
        if np.isfinite(branch.bound.value)
        for best in (branch.best,)
    )


def published_beside(entry: LayoutEntry) -> Published | None:
    """Return the best published order on the placement of an entry, on whichever of its layouts."""
    assert entry.result is not None
    results = [other.result for other in entry.branch.entries.values() if other.result is not None]
    compared = [result for result in results if result.published is not None]
    own = min(compared, key=lambda result: result.published.value if result.published else np.inf, default=entry.result)
    timed = entry.branch.published
    if timed is not None and (own.published is None or timed.value < own.published.value):
        return Published(timed.schedule.name, timed.value)
    return own.published
