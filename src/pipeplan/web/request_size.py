"""How much work a request is, from its numbers alone, so that one that is too large is refused before any work.

What is too large anywhere is refused by :mod:`pipeplan.model.quantities`; a server's limit is lower.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeplan.api import as_taken_by, same_ranks, shape_of
from pipeplan.costs import Settings
from pipeplan.errors import ShapeError
from pipeplan.strategies import STRATEGIES, strategy

MOST_OPS = 2_000_000
"""The most ops that all the schedules of a request may have together."""

_KINDS = 3
"""Ops for each forward: F, I and W."""

_MESSAGES = 4
"""Sends and receives for each forward and its backward, where messages are ops."""


def require_servable(names: Iterable[str], settings: Settings) -> None:
    """Refuse a request of more than ``MOST_OPS`` ops.

    Parameters
    ----------
    names
        Of strategies; none: all of them.

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
            f"too large to serve: {several if len(ops) > 1 else one}, and the limit is {MOST_OPS:,}; "
            "ask for fewer ranks, microbatches or schedules, or use the command line, which has no such limit",
            field="ranks",
        )


def ops_at_most(name: str, settings: Settings) -> int:
    """An upper bound on the ops of a schedule of this name under these settings."""
    found = strategy(name)
    forwards = shape_of(found, as_taken_by(found, settings)).forwards
    return forwards * (_KINDS + (_MESSAGES if settings.communication == "blocking" else 0))
