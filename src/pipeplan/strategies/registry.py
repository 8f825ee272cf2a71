"""All strategies by name. A new one is a file of this folder and a row of the table below."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import wraps
from importlib import import_module
from itertools import chain
from typing import Any

from pipeplan.foundation.errors import PipeplanError, PluginError
from pipeplan.foundation.registry import Registry
from pipeplan.model import Schedule, counted
from pipeplan.strategies.protocol import FromCosts, Shape, Strategy

_FAMILIES = {
    "gpipe": ("gpipe", "looped-bfs"),
    "one_f_one_b": ("1f1b", "eager-1f1b", "1f1b-overlap", "kfkb", "mario"),
    "interleaved": ("interleaved-1f1b", "interleaved-zb", "interleaved-1f1b-overlap"),
    "zero_bubble": ("zb-h1", "zb-h2", "zbv"),
    "controllable_memory": ("v-min", "v-half"),
    "dualpipe": ("dualpipe", "dualpipev"),
    "bidirectional": ("chimera", "bitpipe"),
    "hanayo": ("hanayo",),
    "sliced": ("seq1f1b", "slimpipe", "svpp", "mepipe"),
    "zb_auto": ("zb-auto",),
    "zbv_heuristic": ("zbv-heuristic",),
}
"""Names of the strategies in ``FAMILY`` of each file of this folder, in the order of the documentation."""

_FILE_OF = {name: file for file, names in _FAMILIES.items() for name in names}

_SIGNS = str.maketrans("", "", "-_ ")


def _plain(name: str) -> str:
    """Return a name without case and separators, as ``zbh1`` for ZB-H1, and without the start of PyTorch's class names."""
    return name.lower().translate(_SIGNS).removeprefix("schedule")


_NAME_OF = {_plain(name): name for name in _FILE_OF}


def _family(file: str) -> tuple[Strategy, ...]:
    family: tuple[Strategy, ...] = import_module(f"{__package__}.{file}").FAMILY
    return family


def _built_in() -> Iterator[Strategy]:
    return chain.from_iterable(map(_family, _FAMILIES))


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


class Strategies(Registry[Strategy]):
    """Strategies by name; a look-up of a built-in one by its own name loads only its file."""

    def knows(self, name: str) -> bool:
        """Return True if a strategy has this name or alias without loading a plugin."""
        return _plain(name) in _NAME_OF or super().knows(name)

    def find(self, name: str) -> Strategy | None:
        """Return the strategy with this name or alias; see :meth:`Registry.find`."""
        own = _NAME_OF.get(_plain(name))
        if own is not None:
            return next(rule for rule in _family(_FILE_OF[own]) if rule.name == own)
        return super().find(name)


STRATEGIES = Strategies(
    "pipeplan.strategies",
    Strategy,
    "schedule",
    _built_in,
    names=lambda strategy: (strategy.name, *strategy.aliases),
    plain=_plain,
    item=_named_in_errors,
)
"""All strategies by name: those of pipeplan in the order of the documentation, then registered ones and plugins."""


def strategy(name: str) -> Strategy:
    """Return the strategy with this name or alias, in any case, with or without hyphens.

    Raises UnknownNameError if there is none; the message suggests the most similar name.
    """
    return STRATEGIES.required(name, field="schedules")


def is_strategy(name: str) -> bool:
    """Return True if a strategy has this name or alias, in any case, with or without hyphens."""
    return STRATEGIES.find(name) is not None


def _reduced(rule: Strategy) -> tuple[Callable[..., Strategy], tuple[Any, ...]]:
    """Pickle a built-in strategy as its name, because its formulas are functions without one; others as their fields."""
    if rule.name in _FILE_OF and strategy(rule.name) is rule:
        return strategy, (rule.name,)
    return Strategy, tuple(getattr(rule, field.name) for field in fields(rule))


copyreg.pickle(Strategy, _reduced)
