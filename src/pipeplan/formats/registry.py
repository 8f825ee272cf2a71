"""The table of formats: every module of this package that declares ``FORMATS`` has its formats in it.

Pictures, and what only the strategies can vouch for, are added in :mod:`pipeplan.api.outputs`, which has the whole table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from pipeplan.formats.format import Content, Format

_ORDER: tuple[Content, ...] = ("schedule", "settings", "timeline", "costs")


@cache
def formats() -> Mapping[str, Format]:
    """The formats by name: those that hold a schedule first, then those of timelines and of costs."""
    package = import_module(__package__)
    modules = [import_module(f"{package.__name__}.{found.name}") for found in iter_modules(package.__path__)]
    declared = [each for module in modules for each in getattr(module, "FORMATS", ())]
    return in_order(declared)


def in_order(declared: Iterable[Format]) -> dict[str, Format]:
    """Formats by name, in the order in which lists and menus show them."""
    return {each.name: each for each in sorted(declared, key=_place)}


def _place(declared: Format) -> tuple[int, str]:
    """The first thing that it can hold, and its name; what can only be read comes last."""
    return next(
        (turn for turn, content in enumerate(_ORDER) if content in declared.writers), len(_ORDER)
    ), declared.name
