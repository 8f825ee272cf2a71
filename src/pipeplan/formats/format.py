"""Definition of a format, the settings that trainer formats accept and return, and the table of all formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from numbers import Integral
from pkgutil import iter_modules
from typing import Any, Literal

from pipeplan.costs import COUNT, Costs, Options, Range, option
from pipeplan.foundation.errors import InputError, ShapeError
from pipeplan.foundation.extensions import extensions, loaded
from pipeplan.foundation.registry import Registry
from pipeplan.model import MemoryUse, Schedule, Timeline, shortened

Content = Literal[
    "schedule", "settings", "timeline", "costs", "record", "report", "pictures", "front picture", "plan picture"
]
"""Kinds of content: a schedule without times, as a trainer's settings, or with times; costs, records, pictures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineContent:
    """A timeline and the other data that formats can write with it.

    Attributes
    ----------
    timeline
        Simulated or measured timeline.
    memory
        Memory of each rank after each op, if known.
    costs
        Costs of the simulation; None for a measured timeline.
    figures
        Record of its result, by the names of ``pipeplan simulate --json``.
    steps
        All measured steps on one clock, if the timeline is one of several.
    """

    timeline: Timeline
    memory: MemoryUse | None = None
    costs: Costs | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[Timeline, ...] = ()


Readable = Schedule | Timeline | Costs
"""Content that a file can be read as."""


@dataclass(frozen=True, kw_only=True)
class Training(Options):
    """Settings that a trainer needs in addition to the schedule.

    Attributes
    ----------
    layers
        Number of transformer layers per stage, without embedding and head; None leaves the split to the trainer.
    mtp_layers
        Number of multi-token prediction layers, which precede the head.
    microbatch_size
        Sequences per microbatch.
    sequence_length
        Tokens per sequence, if known.
    data_parallel
        Number of pipeline replicas.
    csv
        Path of the schedule's CSV on the training machines; None: derived from the schedule's name.
    trainer_version
        Release of the trainer; None: the newest known one that can be installed, and for PyTorch's schedules with
        communication (``torch-csv-comms``) the installed one, if any.
    delayed_weights
        True if the costs delay the weights of overlapped pairs, for trainers that can.

    Raises
    ------
    InputError
        If a number or a text is invalid, with the name of the attribute as its ``field``.
    """

    layers: tuple[int, ...] | None = None
    delayed_weights: bool = False
    # A table, read by columns: formatted, it would have a line for every argument.
    # fmt: off
    mtp_layers: int = option(
        0, kind="count", group="trainer", usual=False, range=Range(0, most=1_000), flags=("--mtp",),
        help="Number of multi-token prediction layers.",
    )
    microbatch_size: int = option(
        1, kind="count", group="trainer", usual=False, help="Sequences per microbatch.", range=COUNT
    )
    sequence_length: int | None = option(
        kind="count", group="trainer", usual=False, help="Sequence length in tokens.", range=COUNT
    )
    data_parallel: int = option(
        1, kind="count", group="trainer", usual=False, help="Number of pipeline replicas.", range=COUNT
    )
    csv: str | None = option(
        kind="text", group="trainer", usual=False, longest=10_000,
        help="Path of the schedule's CSV file on the training machines.",
    )
    trainer_version: str | None = option(
        kind="text", group="trainer", usual=False,
        help="Release of the trainer.", default="the newest known one; for torch-csv-comms the installed PyTorch",
    )
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layers is not None and not _are_counts(self.layers):
            raise ShapeError(
                f"layers per stage must be whole numbers, not {shortened(repr(self.layers), 60)}",
                field="layers_per_stage",
            )
        if self.layers is not None and (min(self.layers, default=0) < 0 or not sum(self.layers)):
            raise ShapeError(
                f"layers per stage must be at least 0 and not all 0, not {self.layers}",
                field="layers_per_stage",
            )
        if self.csv == "":
            raise InputError("csv must be a file path, not empty", field="csv")

    def layers_of(self, stages: int) -> tuple[int, ...] | None:
        """Return the layers of this many stages. Raises ShapeError if there is not one number per stage."""
        if self.layers is not None and len(self.layers) != stages:
            raise ShapeError(
                f"layers per stage: {len(self.layers)} values for {stages} stages", field="layers_per_stage"
            )
        return self.layers


def _are_counts(layers: Any) -> bool:
    several = isinstance(layers, Sequence) and not isinstance(layers, str | bytes)
    return several and all(isinstance(count, Integral) and not isinstance(count, bool) for count in layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerSettings:
    """A trainer's settings as text.

    Attributes
    ----------
    text
        Flags or code to paste.
    files
        Text of each file that the settings refer to, by its path.
    warnings
        Problems with these settings in this trainer's release, one sentence each; the text contains them too.
    """

    text: str
    files: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Format:
    """A file format with a writer for each kind of content it supports.

    Attributes
    ----------
    name
        Name for ``pipeplan export --to``.
    title
        Title in menus.
    help
        Purpose, in one sentence.
    ending
        Suffix of file names. If several formats support the same content, the longest matching suffix decides.
    media
        Media type.
    write_schedule, write_timeline, write_costs, write_record
        Functions that return the text of a schedule, a timeline, costs, or the record of any answer; None if
        unsupported.
    write_for_release
        Like ``write_schedule`` for a release of the trainer; None selects the default release.
    warnings
        Function that returns warnings for a schedule written in this format, one sentence each.
    write_settings
        Function from a schedule and a :class:`Training` to a trainer's settings.
    convert_schedule
        Like ``write_schedule``, but without omitting ops that ``write_schedule`` leaves out.
    draw, draw_report, draw_front, draw_plan
        Functions that draw views, a page of views with a table, a Pareto front, or a plan; see :mod:`pipeplan.drawing`,
        which this package does not import.
    explains
        True if its pictures also show why ranks idle.
    read
        Function that returns the content of a text. Takes the text, a name for messages, and a flag that leaves
        duplicate ops for the checker. Raises FormatError for invalid text, InvalidScheduleError for an invalid
        schedule.
    recognises
        Function that returns True if a text is of this format and not of another one with the same suffix; None for the
        format to use if no other one recognises the text.
    """

    name: str
    title: str
    help: str
    ending: str
    media: str
    write_schedule: Callable[[Schedule], str] | None = None
    convert_schedule: Callable[[Schedule], str] | None = None
    write_for_release: Callable[[Schedule, str | None], str] | None = None
    warnings: Callable[[Schedule], tuple[str, ...]] | None = None
    write_settings: Callable[[Schedule, Training], TrainerSettings] | None = None
    write_timeline: Callable[[TimelineContent], str] | None = None
    write_costs: Callable[[Costs], str] | None = None
    write_record: Callable[[Mapping[str, Any]], str] | None = None
    draw: Callable[..., bytes | str] | None = None
    draw_report: Callable[..., bytes | str] | None = None
    draw_front: Callable[..., bytes | str] | None = None
    draw_plan: Callable[..., bytes | str] | None = None
    explains: bool = False
    read: Callable[[str, str, bool], Readable] | None = None
    recognises: Callable[[str], bool] | None = None

    @property
    def writers(self) -> dict[Content, Callable[..., bytes | str | TrainerSettings]]:
        """Supported contents, each with its writer."""
        writers: dict[Content, Callable[..., bytes | str | TrainerSettings] | None] = {
            "schedule": self.write_schedule,
            "settings": self.write_settings,
            "timeline": self.write_timeline,
            "costs": self.write_costs,
            "record": self.write_record,
            "report": self.draw_report,
            "pictures": self.draw,
            "front picture": self.draw_front,
            "plan picture": self.draw_plan,
        }
        return {content: writer for content, writer in writers.items() if writer is not None}

    @property
    def suffix(self) -> str:
        """Last part of ``ending``: ``.json`` for ``.trace.json``."""
        return "." + self.ending.rpartition(".")[2]


_ORDER: tuple[Content, ...] = ("schedule", "settings", "timeline", "costs")


def _built_in() -> Iterable[Format]:
    package = import_module(__package__)
    modules = [import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__)]
    own = [declaration for module in modules for declaration in getattr(module, "FORMATS", ())]
    registered = [loaded(address) for extension in extensions() for address in extension.formats]
    return in_order(chain(own, *registered)).values()


_REGISTRY = Registry("pipeplan.formats", Format, "format", _built_in, names=lambda declared: (declared.name,))


def formats() -> Registry[Format]:
    """Return all formats by name: those of schedules, of timelines and of costs, then registered ones and plugins."""
    return _REGISTRY


def in_order(declared: Iterable[Format]) -> dict[str, Format]:
    """Return formats by name in the order of lists and menus."""
    return {declaration.name: declaration for declaration in sorted(declared, key=_place)}


def _place(declared: Format) -> tuple[int, str]:
    """Return the sort key of a format: its first content, then its name; formats without writers come last."""
    return next(
        (turn for turn, content in enumerate(_ORDER) if content in declared.writers), len(_ORDER)
    ), declared.name
