"""Every schedule that has a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final, overload

from pipeplan.api.machines import Machines
from pipeplan.api.presentable import Presentable
from pipeplan.costs import MACHINES
from pipeplan.drawing import View
from pipeplan.errors import InputError
from pipeplan.strategies import STRATEGIES, Strategy, strategy


@final
@dataclass(frozen=True, eq=False)
class Catalogue(Presentable):
    """Strategies in the order of the documentation.

    Iteration gives the strategies, ``catalogue["zbv"]`` one of them; ``to_frame()`` has a row a strategy.

    Attributes
    ----------
    strategies
        All, or the one that was asked for; a catalogue of one also tells how it works.
    """

    strategies: tuple[Strategy, ...]

    def __iter__(self) -> Iterator[Strategy]:
        return iter(self.strategies)

    def __len__(self) -> int:
        return len(self.strategies)

    def __contains__(self, name: object) -> bool:
        return any(found.name == name for found in self.strategies)

    def __getitem__(self, name: str) -> Strategy:
        """The strategy of this name or alias. Raises UnknownNameError, naming the nearest one."""
        return strategy(name)

    def views(self) -> Sequence[View]:
        """None: a strategy is drawn when it is simulated."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """``schedules``: what each takes, what its authors promise, and who they are."""
        return {"schedules": [_record(found) for found in self.strategies]}

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [_record(found) for found in self.strategies]

    def __repr__(self) -> str:
        return f"<Catalogue: {', '.join(found.name for found in self.strategies)}>"


def _record(found: Strategy) -> dict[str, Any]:
    return {
        "name": found.name,
        "title": found.title,
        "placement": found.placement,
        "chunks": fixed_chunks(found),
        "accepts": found.accepts,
        "bubble": found.bubble.text,
        "memory": found.memory.text,
        "paper": found.paper,
        "aliases": list(found.aliases),
        "variants": list(found.variants),
    }


@overload
def schedules(name: str | None = None, /, *, machines: Literal[False] = False) -> Catalogue: ...
@overload
def schedules(name: None = None, /, *, machines: Literal[True]) -> Machines: ...
@overload
def schedules(name: str | None = None, /, *, machines: bool) -> Catalogue | Machines: ...
def schedules(name: str | None = None, /, *, machines: bool = False) -> Catalogue | Machines:
    """The strategies by name: placement, shapes, bubble and memory formulas, paper.

    Parameters
    ----------
    name
        One of them, by name or alias: its table also tells its idea and timing. Default: all.
    machines
        List the machines whose losses between ops are known instead: what ``machine`` takes.

    Raises
    ------
    UnknownNameError
        For an unknown name; the message suggests the nearest one.
    InputError
        For a name beside ``machines``.

    Examples
    --------
    >>> pipeplan.schedules("ZBVZeroBubble")
    <Catalogue: zbv>
    """
    if machines:
        if name is not None:
            raise InputError(f"machines are listed without a schedule: leave out {name}, or machines")
        return Machines(tuple(MACHINES.values()))
    return Catalogue(tuple(STRATEGIES.values()) if name is None else (strategy(name),))


def fixed_chunks(found: Strategy) -> int | None:
    """The chunks a rank that a strategy has whatever is asked for; None where it takes any."""
    return found.chunks if found.fixed_chunks else None
