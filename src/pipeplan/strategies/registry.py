"""All strategies by name. Every file of this folder with a ``FAMILY`` tuple is discovered automatically."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from pipeplan.errors import InputError, UnknownNameError
from pipeplan.model import shortened
from pipeplan.strategies.protocol import Strategy

_FIRST = (
    "gpipe",
    "one_f_one_b",
    "interleaved",
    "zero_bubble",
    "zbv",
    "controllable_memory",
    "dualpipe",
    "chimera",
    "hanayo",
    "seq1f1b",
    "zb_auto",
    "zbv_heuristic",
)
"""Files in the order of the documentation; other files follow in alphabetical order."""


def _registered() -> Iterator[Strategy]:
    files = sorted(module.name for module in iter_modules([str(Path(__file__).parent)]))
    for file in sorted(files, key=lambda file: _FIRST.index(file) if file in _FIRST else len(_FIRST)):
        family: tuple[Strategy, ...] = getattr(import_module(f"{__package__}.{file}"), "FAMILY", ())
        yield from family


class Strategies(UserDict[str, Strategy]):
    """Dictionary of strategies by name.

    A strategy added under another name is renamed to it and keeps its own name as an alias.
    """

    def __setitem__(self, name: str, strategy: Strategy) -> None:
        if not isinstance(strategy, Strategy):
            raise InputError(f"STRATEGIES maps names to strategies, not {shortened(f'{name!r}: {strategy!r}', 60)}")
        if strategy.name != name:
            strategy = replace(strategy, name=name, aliases=(*strategy.aliases, strategy.name))
        super().__setitem__(name, strategy)


STRATEGIES = Strategies({strategy.name: strategy for strategy in _registered()})
"""All strategies by name, in the order of the documentation."""


def strategy(name: str) -> Strategy:
    """Return the strategy with this name or alias, ignoring letter case.

    Raises UnknownNameError if there is none; the message suggests the most similar name.
    """
    match = _named(name)
    if match is None:
        raise UnknownNameError("schedule", name, STRATEGIES, field="schedules")
    return match


def is_strategy(name: str) -> bool:
    """Return True if a strategy has this name or alias, ignoring letter case."""
    return _named(name) is not None


def _named(name: str) -> Strategy | None:
    """Return the strategy with this name or alias, or None. Looks at ``STRATEGIES`` on every call, as tests add to it."""
    lower = name.lower()
    if lower in STRATEGIES:
        return STRATEGIES[lower]
    spellings = ((key, *strategy.aliases, strategy.name) for key, strategy in STRATEGIES.items())
    pairs = zip(spellings, STRATEGIES.values(), strict=True)
    return next((strategy for names, strategy in pairs if lower in map(str.lower, names)), None)
