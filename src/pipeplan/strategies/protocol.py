"""What a strategy is: a rule that makes a schedule, what it looks at, and what its authors promise about it.

Most rules look at the shape alone. Some look at costs and memory limits, too: theirs is a :class:`FromCosts`. All are called
the same way, ``strategy(shape, costs, limits)``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from pipeplan.costs import Costs, Limits, Settings
from pipeplan.errors import CostError, ShapeError, UnknownNameError
from pipeplan.model import Placement, Schedule, require_size


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a schedule: ranks, microbatches, chunks, and how microbatches are grouped or cut.

    Attributes
    ----------
    ranks, microbatches, chunks
        p, m and v.
    group_size
        Microbatches in a group of an interleaved schedule; None is the strategy's default.
    slices
        Slices of a microbatch's sequence.
    variant
        Which of several published rules under one name; None is the strategy's first.

    Raises
    ------
    ShapeError
        For less than one of anything, or more forwards than can be scheduled.
    """

    ranks: int
    microbatches: int
    chunks: int = 1
    group_size: int | None = None
    slices: int = 1
    variant: str | None = None

    def __post_init__(self) -> None:
        require_size(ranks=self.ranks, chunks=self.chunks, microbatches=self.microbatches, slices=self.slices)
        if self.group_size is not None and self.group_size < 1:
            raise ShapeError(f"group size must be at least 1, not {self.group_size}", field="group_size")

    @property
    def forwards(self) -> int:
        """How many forwards a schedule of this shape has."""
        return self.ranks * self.chunks * self.microbatches * self.slices


def _any_shape(shape: Shape) -> None:
    """Refuse no shape."""


def _unknown(shape: Shape) -> float:
    return math.inf


@dataclass(frozen=True, slots=True)
class Formula:
    """A published figure: in words for a person, and as a function of the shape for a test; infinite where there is none."""

    text: str
    value: Callable[[Shape], float] = _unknown


@dataclass(frozen=True, slots=True)
class FromCosts:
    """A rule that looks at costs and memory limits beside the shape.

    Attributes
    ----------
    build
        Makes the schedule from a shape, the costs of its stages, and every rank's limit; None where there is none. It raises
        CostError for costs that it cannot take, and InfeasibleError where it finds no schedule within the limits.
    default_limit
        Under what limit it runs when none is given, in words.
    """

    build: Callable[[Shape, Costs, Limits | None], Schedule]
    default_limit: str


@dataclass(frozen=True, slots=True)
class Strategy:
    """A published schedule.

    Attributes
    ----------
    name, title
        Its name on the command line, and what it is in one line.
    placement
        Name of the placement it uses.
    shapes
        The shapes (and costs) that it takes, in words.
    bubble
        Idle time of the worst rank, in units of one rank's forward on one microbatch, when forward, input backward and
        weight backward take the same and transfers nothing. An upper bound, met exactly where the text says no more.
    memory
        Peak activations of the worst rank, where one activation is all chunks of a rank for one microbatch.
    paper
        Where it was published.
    build
        Makes the schedule from a shape that it accepts, or from such a shape and the costs.
    requires
        Refuses a shape: raises ShapeError with the rule that the shape breaks.
    chunks
        Chunks a rank when nobody says; where ``fixed_chunks``, no other number is possible.
    slices
        Slices of a microbatch's sequence when nobody says.
    grouped
        Whether it runs microbatches in groups, and so has a group size.
    variants
        Rules published under this one name, the default first.
    aliases
        Its names elsewhere.
    """

    name: str
    title: str
    placement: str
    shapes: str
    bubble: Formula
    memory: Formula
    paper: str
    build: Callable[[Shape], Schedule] | FromCosts
    requires: Callable[[Shape], object] = _any_shape
    chunks: int = 1
    fixed_chunks: bool = True
    slices: int = 1
    grouped: bool = False
    variants: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def looks_at_costs(self) -> bool:
        """Whether the schedule depends on costs and memory limits, and not on the shape alone."""
        return isinstance(self.build, FromCosts)

    @property
    def idea(self) -> str:
        """The idea and the timing table of the strategy, as its builder's documentation has them."""
        build = self.build.build if isinstance(self.build, FromCosts) else self.build
        return inspect.getdoc(build) or self.title

    def accepts(self, shape: Shape) -> bool:
        """Whether the strategy has a schedule for a shape; none is made."""
        try:
            self.requires(shape)
        except ShapeError:
            return False
        return True

    def placed(self, shape: Shape) -> Placement:
        """Return the placement of its schedule of a shape: costs are given for its stages."""
        return Placement.called(self.placement, shape.ranks, shape.chunks)

    def shape(
        self,
        ranks: int,
        microbatches: int,
        chunks: int | None = None,
        *,
        group_size: int | None = None,
        slices: int | None = None,
        variant: str | None = None,
    ) -> Shape:
        """A shape with this strategy's defaults where nothing is said.

        Raises
        ------
        ShapeError
            For a number of chunks or slices that the strategy cannot have, or a group size where it has no groups.
        UnknownNameError
            For a variant it does not know.
        """
        if chunks is not None and self.fixed_chunks and chunks != self.chunks:
            raise ShapeError(f"{self.name} has {self.chunks} chunk(s) a rank, not {chunks}", field="chunks")
        if slices is not None and slices != 1 and self.slices == 1:
            raise ShapeError(f"{self.name} does not cut sequences into slices ({slices} asked for)", field="slices")
        if group_size is not None and not self.grouped:
            raise ShapeError(
                f"{self.name} does not run microbatches in groups (a group size of {group_size} asked for)",
                field="group_size",
            )
        if variant is not None and not self.variants:
            raise ShapeError(f"{self.name} has no variants ({variant} asked for)", field="variant")
        if variant is not None and variant not in self.variants:
            raise UnknownNameError(f"variant of {self.name}", variant, self.variants, field="variant")
        chunks = self.chunks if chunks is None else chunks
        slices = self.slices if slices is None else slices
        return Shape(
            ranks=ranks,
            microbatches=microbatches,
            chunks=chunks,
            group_size=group_size,
            slices=slices,
            variant=variant,
        )

    def __call__(self, shape: Shape, costs: Costs | None = None, limits: Limits | None = None) -> Schedule:
        """The schedule for a shape, named after the strategy.

        Parameters
        ----------
        costs, limits
            Of the stages and ranks of :meth:`placed`, for a strategy that looks at them; any other takes no notice. Without
            costs, F, I and W take the same and transfers nothing.

        Raises
        ------
        ShapeError
            For a shape that the strategy cannot take.
        CostError
            For costs that do not fit the placement or this strategy.
        InfeasibleError
            If it finds no schedule within the limits.
        """
        self.requires(shape)
        if isinstance(self.build, FromCosts):
            placement = self.placed(shape)
            costs = Settings().costs(placement) if costs is None else costs
            if costs.stages != placement.stages:
                raise CostError(f"costs for {costs.stages} stages do not fit {placement.stages} stages")
            schedule = self.build.build(shape, costs, limits)
        else:
            schedule = self.build(shape)
        return replace(schedule, name=self.name)


def require(holds: bool, strategy: str, rule: str, *, field: str) -> None:
    """Refuse a shape: ``require(m >= p, "name", f"needs ...", field="microbatches")``.

    Parameters
    ----------
    field
        The setting that the rule is about.

    Raises
    ------
    ShapeError
        Unless the rule holds.
    """
    if not holds:
        raise ShapeError(f"{strategy} {rule}", field=field)
