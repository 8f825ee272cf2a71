"""All strategies by name: every file of this folder that has a ``FAMILY`` of them is found by itself."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from pipeplan import strategies
from pipeplan.errors import UnknownNameError
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
    files = sorted(module.name for module in iter_modules(strategies.__path__))
    for file in sorted(files, key=lambda file: _FIRST.index(file) if file in _FIRST else len(_FIRST)):
        family: tuple[Strategy, ...] = getattr(import_module(f"{strategies.__name__}.{file}"), "FAMILY", ())
        yield from family


STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for strategy in _registered()}
"""Every strategy by its name, in the order of the documentation."""


def strategy(name: str) -> Strategy:
    """The strategy of this name or alias; letter case does not matter.

    Raises
    ------
    UnknownNameError
        Naming the nearest one.
    """
    found = _named(name)
    if found is None:
        raise UnknownNameError("schedule", name, STRATEGIES, field="schedules")
    return found


def is_strategy(name: str) -> bool:
    """Whether a strategy is called this, in any letter case."""
    return _named(name) is not None


def _named(name: str) -> Strategy | None:
    """The strategy of this name or alias, of those that ``STRATEGIES`` holds now; None where there is none."""
    lower = name.lower()
    if lower in STRATEGIES:
        return STRATEGIES[lower]
    known = ((key, *found.aliases, found.name) for key, found in STRATEGIES.items())
    pairs = zip(known, STRATEGIES.values(), strict=True)
    return next((found for names, found in pairs if lower in map(str.lower, names)), None)
