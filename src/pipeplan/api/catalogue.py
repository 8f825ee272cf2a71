"""Every schedule that has a name, with what it comes to on a few shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, final, overload

from pipeplan.api.machines import Machines
from pipeplan.api.presentable import Presentable
from pipeplan.api.simulations import simulated
from pipeplan.costs import MACHINES, Settings
from pipeplan.drawing import View
from pipeplan.errors import InputError, PipeplanError
from pipeplan.model import require_flags, require_text
from pipeplan.strategies import STRATEGIES, Strategy, strategy

if TYPE_CHECKING:
    from rich.console import RenderableType

SHAPES = ((4, 8), (4, 32), (8, 8), (8, 32))
"""Ranks and microbatches of the shapes on which schedules are timed."""

LARGEST_SHAPE = SHAPES[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """A schedule on one shape where a forward takes 1, each half of a backward too, and transfers nothing.

    Attributes
    ----------
    ranks, microbatches
        The shape; chunks and slices are the strategy's own.
    makespan, idle, peak
        Idle time as a share of the whole, memory in activations; None where the strategy cannot take the shape.
    refused
        Why it cannot; None where it can.
    """

    ranks: int
    microbatches: int
    makespan: float | None = None
    idle: float | None = None
    peak: float | None = None
    refused: str | None = None


def timing(found: Strategy, ranks: int, microbatches: int) -> Timing:
    """What a strategy comes to on a shape."""
    try:
        result = simulated(found.name, Settings(ranks=ranks, microbatches=microbatches))
    except PipeplanError as error:
        return Timing(ranks=ranks, microbatches=microbatches, refused=str(error).splitlines()[0])
    return Timing(
        ranks=ranks,
        microbatches=microbatches,
        makespan=result.makespan,
        idle=result.timeline.bubble.idle_over_total,
        peak=float(result.memory.peak_activation.max()),
    )


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

    @cached_property
    def timings(self) -> tuple[Timing, ...]:
        """Of the one that was asked for, a timing for each of ``SHAPES``; of all, one each for the largest of them."""
        shapes = SHAPES if len(self) == 1 else (LARGEST_SHAPE,)
        return tuple(timing(found, *shape) for found in self.strategies for shape in shapes)

    def views(self) -> Sequence[View]:
        """None: a strategy is drawn when it is simulated."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """``schedules``: what each takes, what its authors promise, and who they are; of one alone also its timings."""
        records = [_record(found) for found in self.strategies]
        if len(self) == 1:
            records[0]["timings"] = [asdict(each) for each in self.timings]
        return {"schedules": records}

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.catalogue import catalogue_parts  # late: tables load rich

        return catalogue_parts(self)

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
    require_flags(machines=machines)
    if name is not None:
        require_text(name, "the name of a schedule", field="schedule")
    if machines:
        if name is not None:
            raise InputError(f"machines are listed without a schedule: leave out {name}, or machines")
        return Machines(tuple(MACHINES.values()))
    return Catalogue(tuple(STRATEGIES.values()) if name is None else (strategy(name),))


def fixed_chunks(found: Strategy) -> int | None:
    """The chunks a rank that a strategy has whatever is asked for; None where it takes any."""
    return found.chunks if found.fixed_chunks else None
