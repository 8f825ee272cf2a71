"""How much work a request is, told from its numbers alone, so that one that is too large is refused before any work.

What is too large for anybody is refused by :mod:`pipeplan.model.size`; a server takes less than that.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeplan.api.sources import as_taken_by, same_ranks, shape_of
from pipeplan.costs import Settings
from pipeplan.errors import ShapeError
from pipeplan.strategies import STRATEGIES, strategy

MOST_OPS = 2_000_000
"""The most ops of all the schedules of a request together."""

_KINDS = 3
"""Ops of a forward that is not alone: F, I and W."""

_MESSAGES = 4
"""Sends and receives of a forward and its backward, where messages are ops."""


def require_servable(names: Iterable[str], settings: Settings) -> None:
    """Refuse a request of more than ``MOST_OPS`` ops.

    Parameters
    ----------
    names
        Of strategies and heuristics; none: all of them.

    Raises
    ------
    ShapeError
        With the number of ops and what to make smaller.
    UnknownNameError
        For a name that nobody knows: a name is never a file here.
    """
    settings = same_ranks(settings)
    chosen = [strategy(name).name for name in names] or list(STRATEGIES)
    ops = {name: ops_at_most(name, settings) for name in chosen}
    total = sum(ops.values())
    if total > MOST_OPS:
        largest = max(ops, key=lambda name: ops[name])
        several = f"{len(ops)} schedules have up to {total:,} ops, of which {largest} up to {ops[largest]:,}"
        one = f"{largest} has up to {total:,} ops"
        raise ShapeError(
            f"too large to serve: {several if len(ops) > 1 else one}, and at most {MOST_OPS:,} are served; "
            "take fewer ranks, microbatches or schedules, or the command line, which has no such limit",
            field="ranks",
        )


def ops_at_most(name: str, settings: Settings) -> int:
    """More ops than a schedule of this name can have under these settings."""
    found = strategy(name)
    forwards = shape_of(found, as_taken_by(found, settings)).forwards
    return forwards * (_KINDS + (_MESSAGES if settings.communication == "blocking" else 0))
