"""All published strategies by name."""

from __future__ import annotations

from pipeplan.errors import UnknownNameError
from pipeplan.strategies import (
    chimera,
    controllable_memory,
    dualpipe,
    gpipe,
    hanayo,
    interleaved,
    one_f_one_b,
    seq1f1b,
    zbv,
    zero_bubble,
)
from pipeplan.strategies.strategy import Strategy

_FAMILIES: tuple[tuple[Strategy, ...], ...] = (
    gpipe.FAMILY,
    one_f_one_b.FAMILY,
    interleaved.FAMILY,
    zero_bubble.FAMILY,
    zbv.FAMILY,
    controllable_memory.FAMILY,
    dualpipe.FAMILY,
    chimera.FAMILY,
    hanayo.FAMILY,
    seq1f1b.FAMILY,
)

STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for family in _FAMILIES for strategy in family}
"""Every strategy by its name, in the order of the documentation."""


def strategy(name: str) -> Strategy:
    """The strategy of this name or alias.

    Raises
    ------
    UnknownNameError
        Naming the nearest one.
    """
    if name in STRATEGIES:
        return STRATEGIES[name]
    aliases = {alias.lower(): found for found in STRATEGIES.values() for alias in found.aliases}
    if name.lower() in aliases:
        return aliases[name.lower()]
    raise UnknownNameError("strategy", name, STRATEGIES)
