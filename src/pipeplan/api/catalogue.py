"""Every schedule that has a name."""

from __future__ import annotations

from pipeplan.strategies import STRATEGIES, Strategy, is_strategy, strategy

Entry = Strategy
entry, is_name = strategy, is_strategy


def schedules(name: str | None = None) -> list[Strategy]:
    """All strategies in the order of the documentation, or the one of this name or alias.

    Raises
    ------
    UnknownNameError
        Naming the nearest one.
    """
    return list(STRATEGIES.values()) if name is None else [strategy(name)]


def fixed_chunks(found: Strategy) -> int | None:
    """The chunks a rank that a strategy has whatever is asked for; None where it takes any."""
    return found.chunks if found.fixed_chunks else None


def idea(found: Strategy) -> str:
    """What a strategy does: its idea and timing table."""
    return found.idea


def formulas(found: Strategy) -> tuple[str, str]:
    """The published bubble and memory, in words."""
    return found.bubble.text, found.memory.text


def variants(found: Strategy) -> tuple[str, ...]:
    """The rules that are published under its one name."""
    return found.variants


def names() -> list[str]:
    """Every strategy's name."""
    return list(STRATEGIES)
