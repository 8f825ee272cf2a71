"""Interface of all strategies: how a schedule is built, from which inputs, and with which published bounds.

Most strategies depend on the shape alone. Those that also depend on costs and memory limits have a :class:`FromCosts`.
All are called the same way: ``strategy(shape, costs, limits)``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from pipeplan.costs import Costs, Limits, Settings
from pipeplan.foundation.errors import CostError, PluginError, ShapeError, UnknownNameError
from pipeplan.model import NEEDS, TWO_COPIES, Need, Placement, Schedule, counted, require_size


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of a schedule: ranks, microbatches, chunks, groups and slices.

    Attributes
    ----------
    ranks, microbatches, chunks
        p, m and v.
    group_size
        Microbatches per group of an interleaved schedule or kfkb; None is the strategy's default.
    slices
        Sequence slices per microbatch.
    variant
        Variant of the strategy; None is its first.

    Raises
    ------
    ShapeError
        If a count is less than 1, or the schedule would be too large.
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
        """Number of forwards in a schedule of this shape."""
        return self.ranks * self.chunks * self.microbatches * self.slices


def _any_shape(shape: Shape) -> None: ...


def _unknown(shape: Shape) -> float:
    return math.inf


@dataclass(frozen=True, slots=True)
class Formula:
    """A published formula, as text for display and as a function of the shape for tests; infinite if there is none."""

    text: str
    value: Callable[[Shape], float] = _unknown


@dataclass(frozen=True, slots=True)
class FromCosts:
    """A rule that depends on costs and memory limits as well as on the shape.

    Attributes
    ----------
    build
        Returns the schedule for a shape, the costs of its stages, and the limit of every rank (None: no limit). It
        raises CostError for unsupported costs, and InfeasibleError if it finds no schedule within the limits.
    default_limit
        Description of the memory limit it applies by default.
    """

    build: Callable[[Shape, Costs, Limits | None], Schedule]
    default_limit: str


@dataclass(frozen=True, slots=True)
class Strategy:
    """A schedule strategy with its documentation.

    Attributes
    ----------
    name, title
        Name on the command line, and a description in one line.
    placement
        Name of the placement it uses.
    shapes
        Description of the supported shapes (and costs).
    bubble
        Idle time of the worst rank, in units of one rank's forward on one microbatch, if forward, input backward and
        weight backward take equally long and transfers take no time. An upper bound, which is exact unless the text
        says otherwise.
    memory
        Peak activations of the worst rank; one activation is what all chunks of a rank hold for one microbatch.
    paper
        Publication.
    build
        Returns the schedule for a supported shape, or (:class:`FromCosts`) for a shape and costs.
    requires
        Raises ShapeError for an unsupported shape, with the rule that it breaks.
    chunks
        Default number of chunks per rank; with ``fixed_chunks``, the only one.
    slices
        Default number of sequence slices per microbatch.
    grouped
        True if microbatches run in groups, so that there is a group size.
    variants
        Names of the variants, the default first.
    aliases
        Names of the same schedule in other projects.
    recomputes
        True if its schedules recompute activations without being told to.
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
    recomputes: bool = False

    @property
    def looks_at_costs(self) -> bool:
        """True if the schedule depends on costs and memory limits, not only on the shape."""
        return isinstance(self.build, FromCosts)

    @property
    def idea(self) -> str:
        """Idea and timing table of the strategy: the docstring of its builder."""
        build = self.build.build if isinstance(self.build, FromCosts) else self.build
        return inspect.getdoc(build) or self.title

    def accepts(self, shape: Shape) -> bool:
        """Return True if the strategy supports this shape. No schedule is built."""
        try:
            self.requires(shape)
        except ShapeError:
            return False
        return True

    @property
    def needs(self) -> tuple[Need, ...]:
        """Needs of its schedules with the default number of slices, as :func:`pipeplan.model.needs_of` returns them."""
        return self.needs_at(self.slices)

    def needs_at(self, slices: int) -> tuple[Need, ...]:
        """Return what its schedules need with this number of slices; no schedule is generated."""
        needs: dict[Need, bool] = {
            "slices": slices > 1,
            "copies": self.placement in TWO_COPIES,
            "recompute": self.recomputes,
        }
        return tuple(name for name in NEEDS if needs[name])

    def placed(self, shape: Shape) -> Placement:
        """Return the placement of the schedule for a shape; costs must have one entry per stage of it."""
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
        """Return a shape, with this strategy's defaults for omitted arguments.

        Raises
        ------
        ShapeError
            If the number of chunks or slices is unsupported, or a group size is passed but there are no groups.
        UnknownNameError
            If the variant is unknown.
        """
        if chunks is not None and self.fixed_chunks and chunks != self.chunks:
            remedy = ": interleaved-1f1b takes several" if self.placement == "linear" and chunks > 1 else ""
            raise ShapeError(
                f"{self.name} needs {counted(self.chunks, 'chunk')} per rank, not {chunks}{remedy}", field="chunks"
            )
        if slices is not None and slices != 1 and self.slices == 1:
            raise ShapeError(f"{self.name} does not support sequence slices, but slices is {slices}", field="slices")
        if group_size is not None and not self.grouped:
            raise ShapeError(
                f"{self.name} does not run microbatches in groups, but group size is {group_size}",
                field="group_size",
            )
        if variant is not None and not self.variants:
            raise ShapeError(f"{self.name} has no variants, but variant is {variant}", field="variant")
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
        """Return the schedule for a shape, named after the strategy.

        Parameters
        ----------
        costs, limits
            Costs and limits for the stages and ranks of :meth:`placed`. Strategies that depend on the shape alone
            ignore them. By default F, I and W take equally long, transfers take no time, and each strategy applies its
            default limit. If microbatches differ, they plan with the mean one.

        Raises
        ------
        ShapeError
            If the shape is unsupported.
        CostError
            If the costs do not match the placement or are unsupported.
        InfeasibleError
            If no schedule within the limits is found.
        """
        self.requires(shape)
        if isinstance(self.build, FromCosts):
            placement = self.placed(shape)
            costs = Settings().costs(placement) if costs is None else costs
            if costs.stages != placement.stages:
                raise CostError(f"costs have {costs.stages} stages, but the schedule has {placement.stages}")
            # Microbatches that differ: the schedule is that of as many mean ones.
            schedule = self.build.build(shape, costs.uniform(), limits)
        else:
            schedule = self.build(shape)
        if not isinstance(schedule, Schedule):
            raise PluginError(f"the builder of {self.name} returns {type(schedule).__name__}, not a Schedule")
        return replace(schedule, name=self.name)


def require(holds: bool, strategy: str, rule: str, *, field: str) -> None:
    """Raise a ShapeError unless ``holds``: ``require(m >= p, "name", f"needs ...", field="microbatches")``.

    Parameters
    ----------
    field
        Setting that the rule is about.

    Raises
    ------
    ShapeError
        If the rule does not hold.
    """
    if not holds:
        raise ShapeError(f"{strategy} {rule}", field=field)


def require_two_directions(shape: Shape, strategy: str) -> None:
    """Raise a ShapeError unless ranks and microbatches are even, as two opposite streams of microbatches need."""
    ranks, microbatches = shape.ranks, shape.microbatches
    require(ranks % 2 == 0, strategy, f"needs an even number of ranks, not {ranks}", field="ranks")
    require(
        microbatches % 2 == 0,
        strategy,
        f"needs an even number of microbatches, half for each direction, not {microbatches}",
        field="microbatches",
    )
