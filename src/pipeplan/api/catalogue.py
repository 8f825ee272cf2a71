"""Everything that makes a schedule from a name: the published strategies and the cost-driven heuristics."""

from __future__ import annotations

import inspect

from pipeplan.errors import UnknownNameError
from pipeplan.strategies.heuristics import HEURISTICS, Heuristic
from pipeplan.strategies.registry import STRATEGIES
from pipeplan.strategies.strategy import Strategy

Entry = Strategy | Heuristic


def schedules(name: str | None = None) -> list[Entry]:
    """All entries in the order of the documentation, or the one of this name or alias.

    Raises
    ------
    UnknownNameError
        Naming the nearest one.
    """
    return [*STRATEGIES.values(), *HEURISTICS.values()] if name is None else [entry(name)]


def entry(name: str) -> Entry:
    """The strategy or heuristic of this name or alias; letter case does not matter.

    Raises
    ------
    UnknownNameError
        Naming the nearest one.
    """
    names = _names()
    if name.lower() not in names:
        raise UnknownNameError("schedule", name, [found.name for found in schedules()], field="schedules")
    return names[name.lower()]


def is_name(text: str) -> bool:
    """Whether a strategy or heuristic is called this."""
    return text.lower() in _names()


def _names() -> dict[str, Entry]:
    aliases: dict[str, Entry] = {
        alias.lower(): strategy for strategy in STRATEGIES.values() for alias in strategy.aliases
    }
    return aliases | {found.name: found for found in schedules()}


def idea(found: Entry) -> str:
    """What an entry does: its idea and timing table, as its builder's documentation has them."""
    return inspect.getdoc(found.build) or found.title


def formulas(found: Entry) -> tuple[str, str]:
    """The published bubble and memory of an entry, in words."""
    if isinstance(found, Strategy):
        return found.bubble.text, found.memory.text
    return found.bubble, found.memory


def fixed_chunks(found: Entry) -> int | None:
    """The chunks a rank that an entry has whatever is asked for; None where it takes any."""
    if isinstance(found, Strategy) and not found.fixed_chunks:
        return None
    return found.chunks
