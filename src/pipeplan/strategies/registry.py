"""All strategies by name. Every file of this folder with a ``FAMILY`` tuple is discovered automatically."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import wraps
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from pipeplan.foundation.errors import PipeplanError, PluginError
from pipeplan.foundation.registry import Registry
from pipeplan.model import Schedule, counted
from pipeplan.strategies.protocol import FromCosts, Shape, Strategy

_FIRST = (
    "gpipe",
    "one_f_one_b",
    "kfkb",
    "mario",
    "interleaved",
    "zero_bubble",
    "zbv",
    "controllable_memory",
    "dualpipe",
    "chimera",
    "bitpipe",
    "hanayo",
    "seq1f1b",
    "sliced_interleaved",
    "zb_auto",
    "zbv_heuristic",
)
"""Files in the order of the documentation; other files follow in alphabetical order."""


def _built_in() -> Iterator[Strategy]:
    files = sorted(module.name for module in iter_modules([str(Path(__file__).parent)]))
    for file in sorted(files, key=lambda file: _FIRST.index(file) if file in _FIRST else len(_FIRST)):
        family: tuple[Strategy, ...] = getattr(import_module(f"{__package__}.{file}"), "FAMILY", ())
        yield from family


def _named_in_errors(plugin: Strategy) -> Strategy:
    """Return the strategy with errors that name it: a fault of a plugin ends neither a comparison of all nor a search."""
    rule: Callable[..., Schedule] = plugin.build.build if isinstance(plugin.build, FromCosts) else plugin.build

    @wraps(rule)
    def build(shape: Shape, *costs: Any) -> Schedule:
        try:
            schedule: Schedule = rule(shape, *costs)
            return schedule
        except PipeplanError:
            raise
        except Exception as error:
            size = f"{counted(shape.ranks, 'rank')} and {counted(shape.microbatches, 'microbatch')}"
            raise PluginError(
                f"the schedule '{plugin.name}' of a plugin fails on {size} ({type(error).__name__}: {error})"
            ) from error

    return replace(plugin, build=replace(plugin.build, build=build) if isinstance(plugin.build, FromCosts) else build)


STRATEGIES = Registry(
    "pipeplan.strategies",
    Strategy,
    "schedule",
    _built_in,
    names=lambda strategy: (strategy.name, *strategy.aliases),
    item=_named_in_errors,
)
"""All strategies by name: those of pipeplan in the order of the documentation, then registered ones and plugins."""


def strategy(name: str) -> Strategy:
    """Return the strategy with this name or alias, ignoring letter case.

    Raises UnknownNameError if there is none; the message suggests the most similar name.
    """
    return STRATEGIES.required(name, field="schedules")


def is_strategy(name: str) -> bool:
    """Return True if a strategy has this name or alias, ignoring letter case."""
    return STRATEGIES.find(name) is not None


def _pickled(plan: Strategy) -> tuple[Callable[..., Strategy], tuple[Any, ...]]:
    """Pickle a built-in strategy as its name, because its formulas are functions without one; others as their fields."""
    if STRATEGIES.built_in.get(plan.name) is plan:
        return strategy, (plan.name,)
    return Strategy, tuple(getattr(plan, field.name) for field in fields(plan))


copyreg.pickle(Strategy, _pickled)
