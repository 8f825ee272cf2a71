"""All strategies by name: every file of this folder that has a ``FAMILY`` of them is found by itself."""

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
"""The files in the order of the documentation; those that are not named here follow by name."""


def _registered() -> Iterator[Strategy]:
    files = sorted(module.name for module in iter_modules([str(Path(__file__).parent)]))
    for file in sorted(files, key=lambda file: _FIRST.index(file) if file in _FIRST else len(_FIRST)):
        family: tuple[Strategy, ...] = getattr(import_module(f"{__package__}.{file}"), "FAMILY", ())
        yield from family


class Strategies(UserDict[str, Strategy]):
    """Strategies by name. One that is added under another name gets that name, and keeps its own as an alias."""

    def __setitem__(self, name: str, strategy: Strategy) -> None:
        if not isinstance(strategy, Strategy):
            raise InputError(f"STRATEGIES holds strategies by name, not {shortened(f'{name!r}: {strategy!r}', 60)}")
        if strategy.name != name:
            strategy = replace(strategy, name=name, aliases=(*strategy.aliases, strategy.name))
        super().__setitem__(name, strategy)


STRATEGIES = Strategies({strategy.name: strategy for strategy in _registered()})
"""Every strategy by its name, in the order of the documentation."""


def strategy(name: str) -> Strategy:
    """The strategy of this name or alias; letter case does not matter.

    Raises
    ------
    UnknownNameError
        Naming the nearest one.
    """
    named = _named(name)
    if named is None:
        raise UnknownNameError("schedule", name, STRATEGIES, field="schedules")
    return named


def is_strategy(name: str) -> bool:
    """Whether a strategy is called this, in any letter case."""
    return _named(name) is not None


def _named(name: str) -> Strategy | None:
    """The strategy of this name or alias, of those that ``STRATEGIES`` holds now; None where there is none."""
    lower = name.lower()
    if lower in STRATEGIES:
        return STRATEGIES[lower]
    spellings = ((key, *strategy.aliases, strategy.name) for key, strategy in STRATEGIES.items())
    pairs = zip(spellings, STRATEGIES.values(), strict=True)
    return next((strategy for names, strategy in pairs if lower in map(str.lower, names)), None)
