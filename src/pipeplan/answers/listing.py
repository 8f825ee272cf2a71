"""Catalogues of the schedules, with their figures on a few shapes, and of machines; registration of further names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, final

import msgspec
from msgspec import UNSET, UnsetType

from pipeplan.answers.answers import Listing
from pipeplan.answers.config_files import BundledCosts, shipped
from pipeplan.answers.outputs import built_in_formats
from pipeplan.answers.parts import columns, facts, line, number
from pipeplan.answers.simulating.simulate import simulated
from pipeplan.costs import MACHINES, Machine, Settings
from pipeplan.formats import Format, formats
from pipeplan.foundation.errors import InputError, PipeplanError
from pipeplan.foundation.extensions import extensions, loaded
from pipeplan.foundation.names import ScheduleName
from pipeplan.foundation.readable import Times, percent
from pipeplan.foundation.records import Evidence, Record, holding
from pipeplan.foundation.registry import Registry
from pipeplan.model import Need, counted, needs_in_words, require_text, shortened
from pipeplan.strategies import STRATEGIES, Strategy, is_strategy, strategy
from pipeplan.trainers import TRAINERS, Trainer

if TYPE_CHECKING:
    from pipeplan.answers.parts import Part


class MachineRecord(Record, frozen=True, kw_only=True):
    """Losses between ops that runs on a machine were fitted to."""

    name: str
    title: str
    time_unit: str
    op_gap: float
    message_time: float
    step_time: float
    source: str


@final
class Machines(Listing[Machine], frozen=True, kw_only=True, eq=False):
    """Machines by name: the overheads of each, in milliseconds, and the runs that they were fitted to.

    Iteration gives the machines; ``to_frame()`` has a row per machine.
    """

    _listed = "machines"
    noun = "machine"

    records: tuple[MachineRecord, ...] = msgspec.field(name="machines")

    machines = Evidence[tuple[Machine, ...]]()
    """The machines as costs take them."""

    def _table(self) -> Iterator[Part]:
        """Return a few lines per machine."""
        for machine in self.records:
            rows = [
                ("gap before every op", f"{number(machine.op_gap)} ms"),
                ("a message takes from a rank", f"{number(machine.message_time)} ms"),
                ("end of a step", f"{number(machine.step_time)} ms"),
                ("source", machine.source),
            ]
            yield line(f"{machine.name}: {machine.title}", "bold")
            yield facts(rows, below=1, indent=2)
        yield line("'--machine NAME' sets them; '--op-gap', '--message-time' and '--step-time' go before it")


def machines() -> Machines:
    """List the machines that the option ``machine`` takes by name, with the runs that they were fitted to.

    Raises
    ------
    InputError
        Never: every preset is right.

    Examples
    --------
    >>> pipeplan.machines()["megatron-a100"].overhead.op_gap > 0
    True
    """
    known = tuple(MACHINES.values())
    records = (
        MachineRecord(
            name=machine.name, title=machine.title, time_unit="ms", source=machine.source, **asdict(machine.overhead)
        )
        for machine in known
    )
    return holding(Machines(records=tuple(records)), machines=known)


@final
class CostsList(Listing[BundledCosts], frozen=True, kw_only=True, eq=False):
    """Costs that come with pipeplan, which ``config`` takes by name: those measured first, then those planned."""

    _listed = "costs"
    noun = "bundled costs"

    costs: tuple[BundledCosts, ...]

    def _table(self) -> Iterator[Part]:
        """Return a row per name."""
        for origin, title in (("measured", "measured on GPUs"), ("planned", "predicted from model and data sheet")):
            rows = [(costs.name, costs.about) for costs in self.costs if costs.origin == origin]
            yield from (line(title, "bold"), facts(rows, below=1, indent=2)) if rows else ()
        yield line(f"'pipeplan compare -c {self.costs[0].name}' compares the schedules on them; -c also reads a file")


def bundled_costs() -> CostsList:
    """List the costs that come with pipeplan."""
    return CostsList(costs=shipped())


SHAPES = ((4, 8), (4, 32), (8, 8), (8, 32))
"""Ranks and microbatches of the shapes on which schedules are timed."""

LARGEST_SHAPE = SHAPES[-1]


class ShapeTiming(Record, frozen=True, kw_only=True):
    """A schedule on one shape where a forward takes 1, each half of a backward too, and transfers nothing.

    Attributes
    ----------
    ranks, microbatches
        The shape; chunks and slices are the strategy's own.
    makespan, idle, peak
        Idle time as a share of the whole, memory in activations; None if the strategy cannot take the shape.
    refused
        Reason why the strategy cannot take the shape; None if it can.
    """

    ranks: int
    microbatches: int
    makespan: float | None = None
    idle: float | None = None
    peak: float | None = None
    refused: str | None = None


def timing(strategy: Strategy, ranks: int, microbatches: int) -> ShapeTiming:
    """Simulate a strategy on a shape with unit costs."""
    try:
        result = simulated(strategy, Settings(ranks=ranks, microbatches=microbatches))
    except PipeplanError as error:
        return ShapeTiming(ranks=ranks, microbatches=microbatches, refused=str(error).splitlines()[0])
    return ShapeTiming(
        ranks=ranks,
        microbatches=microbatches,
        makespan=result.makespan,
        idle=result.timeline.bubble.idle_over_total,
        peak=float(result.memory.peak_activation.max()),
    )


class StrategyRecord(Record, frozen=True, kw_only=True):
    """Description of a strategy: shapes, published bubble and memory, paper; timings only for a single strategy.

    ``needs`` is what its schedules need of the model and the trainer beyond a plain pipeline.
    """

    name: str
    title: str
    placement: str
    needs: tuple[Need, ...]
    chunks: int | None
    default_chunks: int
    accepts: str
    bubble: str
    memory: str
    paper: str
    aliases: tuple[str, ...]
    variants: tuple[str, ...]
    timings: tuple[ShapeTiming, ...] | UnsetType = UNSET


@final
class Catalogue(Listing[Strategy], frozen=True, kw_only=True, eq=False):
    """Strategies in the order of the documentation.

    Iteration gives the strategies, ``catalogue["zbv"]`` one of them; ``to_frame()`` has a row per strategy.
    """

    _listed = "strategies"
    noun = "schedule"

    schedules: tuple[StrategyRecord, ...]

    strategies = Evidence[tuple[Strategy, ...]]()
    """All strategies, or the requested one."""

    def _own_name(self, name: str) -> str:
        return strategy(name).name if is_strategy(name) else name

    @cached_property
    def timings(self) -> tuple[ShapeTiming, ...]:
        """A timing for each of ``SHAPES`` if one strategy was requested; otherwise one per strategy on the largest shape."""
        if len(self) == 1 and self.schedules[0].timings is not UNSET:
            return self.schedules[0].timings
        return tuple(timing(entry, *LARGEST_SHAPE) for entry in self.strategies)

    def _table(self) -> Iterator[Part]:
        """Return two lines per strategy; of one alone all of its figures, its names and its idea."""
        if len(self) == 1:
            yield from _alone(self.strategies[0], self.timings)
            return
        for entry, shape_timing in zip(self, self.timings, strict=True):
            yield _heading(entry)
            yield line(f"{_placed(entry)}; {_in_words(shape_timing)}", indent=4)
        first = self.timings[0]
        yield line()
        yield line(
            f"idle time and peak memory on {first.ranks} ranks with {first.microbatches} microbatches; "
            "'pipeplan list schedules NAME' describes one of them"
        )


def _record(entry: Strategy, timings: tuple[ShapeTiming, ...] | UnsetType = UNSET) -> StrategyRecord:
    return StrategyRecord(
        name=entry.name,
        title=entry.title,
        placement=entry.placement,
        needs=entry.needs,
        chunks=fixed_chunks(entry),
        default_chunks=entry.chunks,
        accepts=entry.shapes,
        bubble=entry.bubble.text,
        memory=entry.memory.text,
        paper=entry.paper,
        aliases=tuple(entry.aliases),
        variants=tuple(entry.variants),
        timings=timings,
    )


def schedules(name: ScheduleName | str | Strategy | None = None, /) -> Catalogue:
    """List the strategies: placement, shapes, bubble and memory formulas, paper.

    Parameters
    ----------
    name
        One of them, by name or alias or the strategy itself, with its idea and timings. Default: all.

    Raises
    ------
    UnknownNameError
        For an unknown name; the message suggests the nearest one.
    InputError
        For a name that is no text.

    Examples
    --------
    >>> pipeplan.schedules("ZBVZeroBubble")
    <Catalogue: zbv>
    """
    if name is not None and not isinstance(name, Strategy):
        require_text(name, "the name of a schedule", field="schedule")
    if name is None:
        strategies = tuple(STRATEGIES.values())
        return holding(Catalogue(schedules=tuple(map(_record, strategies))), strategies=strategies)
    entry = name if isinstance(name, Strategy) else strategy(name)
    record = _record(entry, tuple(timing(entry, *shape) for shape in SHAPES))
    return holding(Catalogue(schedules=(record,)), strategies=(entry,))


def fixed_chunks(entry: Strategy) -> int | None:
    """Return the fixed number of chunks per rank of a strategy; None if it takes any number."""
    return entry.chunks if entry.fixed_chunks else None


def _alone(entry: Strategy, timings: Sequence[ShapeTiming]) -> Iterator[Part]:
    rows = _facts(entry)
    rows += [("variants", ", ".join(entry.variants))] if entry.variants else []
    rows += [("also called", ", ".join(entry.aliases))] if entry.aliases else []
    yield _heading(entry)
    yield ""
    yield facts(rows)
    yield ""
    yield _timed(timings)
    yield line("unit costs: forward 1, each half of a backward 1, free transfers")
    yield from _idea(entry)


def _idea(entry: Strategy) -> Iterator[Part]:
    """Return its description, wrapped; timing tables keep their lines, and errors are left out."""
    for block in entry.idea.partition("\nRaises\n")[0].rstrip().split("\n\n"):
        yield ""
        yield block if block.startswith(" ") else line(" ".join(block.replace("::", ":").split()))


def _heading(entry: Strategy) -> Part:
    return line(f"{entry.name}: {entry.title}", "bold")


def _placed(entry: Strategy) -> str:
    chunks = counted(entry.chunks, "chunk")
    return f"{entry.placement}, {chunks} per rank{' or any other number' if fixed_chunks(entry) is None else ''}"


def _in_words(timing: ShapeTiming) -> str:
    if timing.idle is None or timing.peak is None:
        return "not on this shape"
    return f"idle {percent(timing.idle)}, peak {timing.peak:g}"


def _timed(timings: Sequence[ShapeTiming]) -> Part:
    table = columns("ranks", "microbatches", "makespan", "idle", "peak activations", padding=1)
    form = Times.of((entry.makespan for entry in timings if entry.makespan is not None), "")
    for entry in timings:
        shape = (str(entry.ranks), str(entry.microbatches))
        if entry.makespan is None or entry.idle is None or entry.peak is None:
            table.add_row(*shape, "not possible", "", "")
        else:
            table.add_row(*shape, form.number(entry.makespan), percent(entry.idle), f"{entry.peak:g}")
    return table


def _facts(entry: Strategy) -> list[tuple[str, str]]:
    return [
        ("placement", _placed(entry)),
        *([("needs", needs_in_words(entry.needs))] if entry.needs else []),
        ("accepts", entry.shapes),
        ("idle time", f"{entry.bubble.text}; in forwards of one rank"),
        ("peak activations", entry.memory.text),
        ("paper", entry.paper),
    ]


class Named(Protocol):
    """A plugin of an extension, such as a model or a GPU."""

    @property
    def name(self) -> str:
        """Name under which it is registered."""


Plugin = Strategy | Format | Trainer | Named
"""Everything that :func:`pipeplan.register` and the entry points of a package add."""


def register(*plugins: Plugin) -> None:
    """Add strategies, formats, trainers, models or GPUs to this process, by their own names.

    They take part wherever the built-in ones do: in :func:`pipeplan.compare`, :func:`pipeplan.schedules`, exports, files,
    plans and the command line of this process. Registering another one under the same name replaces the first.

    A package declares its plugins as entry points of the groups ``pipeplan.strategies``, ``pipeplan.formats``,
    ``pipeplan.trainers``, ``pipeplan.models`` and ``pipeplan.gpus``, so that they are available wherever it is installed.

    Parameters
    ----------
    *plugins
        A :class:`pipeplan.strategies.Strategy`, :class:`pipeplan.formats.Format`, :class:`pipeplan.trainers.Trainer`;
        a ``ModelShape`` or ``Preset`` of ``pipeplan.extensions.planning``.

    Raises
    ------
    InputError
        For a value of another type, and for a name that cannot be used or that a built-in one has.

    Examples
    --------
    >>> from dataclasses import replace
    >>> gpipe = pipeplan.schedules("gpipe")["gpipe"]
    >>> pipeplan.register(replace(gpipe, name="mine", aliases=()))  # doctest: +SKIP
    >>> pipeplan.simulate("mine", ranks=2, microbatches=2).makespan  # doctest: +SKIP
    """
    of_extensions = (loaded(address) for extension in extensions() for address in extension.registries)
    registries: tuple[Registry[Any], ...] = (STRATEGIES, formats(), TRAINERS, *of_extensions)
    for plugin in plugins:
        registry = next((registry for registry in registries if isinstance(plugin, registry.kind)), None)
        if registry is None:
            kinds = ", ".join(registry.kind.__name__ for registry in registries)
            raise InputError(f"cannot register {shortened(repr(plugin), 60)}: expected one of {kinds}")
        if isinstance(plugin, Format) and plugin.name in built_in_formats():
            raise InputError(f"cannot register the format '{plugin.name}': it is built in; choose another name")
        registry.add(plugin)
