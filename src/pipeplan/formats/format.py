"""What a format is, a row of the table of formats; what a format of trainer settings takes and gives; and the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from numbers import Integral
from pkgutil import iter_modules
from typing import Any, Literal

import msgspec

from pipeplan.costs import COUNT, Costs, Options, Range, option
from pipeplan.errors import InputError, ShapeError
from pipeplan.model import MemoryUse, Schedule, Timeline, shortened

Content = Literal[
    "schedule", "settings", "timeline", "costs", "record", "report", "pictures", "front picture", "plan picture"
]
"""What a format can hold: one schedule without times, as a trainer's settings, or with times; costs, figures, pictures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A timeline, and what is known beside it.

    Attributes
    ----------
    timeline
        Simulated or measured.
    memory
        What each rank holds after each op, where it is known.
    costs
        What the timeline was simulated on; None for a measured one.
    figures
        The record of the result that it belongs to, by the names of ``pipeplan simulate --json``.
    """

    timeline: Timeline
    memory: MemoryUse | None = None
    costs: Costs | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)


Readable = Schedule | Timeline | Costs
"""Content that a file can be read as."""


@dataclass(frozen=True, kw_only=True)
class Training(Options):
    """What a trainer must know to train by a schedule, and no schedule says.

    Attributes
    ----------
    layers
        How many transformer layers each stage has, embedding and head apart; None leaves the split to the trainer.
    mtp_layers
        How many layers predict further tokens (multi-token prediction); they stand before the head.
    microbatch_size
        Sequences in a microbatch.
    sequence_length
        Tokens in a sequence; None where nobody said.
    data_parallel
        Replicas of the pipeline.
    csv
        The path of the schedule's CSV on the machines that train; None: a name made of the schedule's.
    trainer_version
        The release that is trained with; None: the newest one that can be installed and is known, and for PyTorch's
        schedules with communication (``torch-csv-comms``) the installed one where there is one.

    Raises
    ------
    InputError
        For a number or a text that cannot be, with the name of the attribute as its ``field``.
    """

    layers: tuple[int, ...] | None = None
    mtp_layers: int = option(
        0, kind="count", group="trainer", title="Prediction layers", range=Range(0, most=1_000), flags=("--mtp",),
        help="Number of multi-token prediction layers.",
    )  # fmt: skip
    microbatch_size: int = option(
        1, kind="count", group="trainer", title="Microbatch", help="Sequences per microbatch.", range=COUNT
    )  # fmt: skip
    sequence_length: int | None = option(
        kind="count", group="trainer", title="Sequence", help="Sequence length in tokens.", range=COUNT
    )  # fmt: skip
    data_parallel: int = option(
        1, kind="count", group="trainer", title="Replicas", help="Number of pipeline replicas.", range=COUNT
    )  # fmt: skip
    csv: str | None = option(
        kind="text", group="trainer", title="CSV", longest=10_000,
        help="Path of the schedule's CSV file on the training machines.",
    )  # fmt: skip
    trainer_version: str | None = option(
        kind="text", group="trainer", title="Release",
        help="Release of the trainer.", default="the newest known one; for torch-csv-comms the installed PyTorch",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layers is not None and not _are_counts(self.layers):
            raise ShapeError(
                f"layers per stage are whole numbers, not {shortened(repr(self.layers), 60)}", field="layers_per_stage"
            )
        if self.layers is not None and (min(self.layers, default=0) < 0 or not sum(self.layers)):
            raise ShapeError(
                f"layers per stage are numbers of at least 0, and not all of them 0, not {self.layers}",
                field="layers_per_stage",
            )
        if self.csv == "":
            raise InputError("csv is an empty path: name a file", field="csv")

    def layers_of(self, stages: int) -> tuple[int, ...] | None:
        """The layers of this many stages. Raises ShapeError where they are not one number a stage."""
        if self.layers is not None and len(self.layers) != stages:
            raise ShapeError(
                f"layers per stage: {len(self.layers)} values for {stages} stages", field="layers_per_stage"
            )
        return self.layers


def _are_counts(layers: Any) -> bool:
    several = isinstance(layers, Sequence) and not isinstance(layers, str | bytes)
    return several and all(isinstance(each, Integral) and not isinstance(each, bool) for each in layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerSettings:
    """A trainer's settings as text.

    Attributes
    ----------
    text
        Flags or code, to paste.
    files
        The text of each file that these settings name, by the path that they name it with.
    warnings
        What goes wrong with them in this trainer's release, a sentence each; the text says it too.
    """

    text: str
    files: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Format:
    """A file format, with a function for each thing that it can be written of.

    Attributes
    ----------
    name
        As ``pipeplan export --to`` takes it.
    title
        In a menu.
    help
        What it is for, one sentence.
    ending
        Of its files. Of several formats that can hold the same, the longest ending that a file has decides.
    media
        Its media type.
    write_schedule, write_timeline, write_costs, write_record
        Its text of a schedule, an outcome, costs, or the record of an answer of any kind; None for what it cannot hold.
    write_for_release
        Like ``write_schedule``, where the text depends on the trainer's release: takes its name too, None for the default.
    warnings
        What the user must know of a schedule that is written in this format, a sentence each.
    write_settings
        A trainer's settings for a schedule, which takes what it must know beside.
    convert_schedule
        Like ``write_schedule``, where that leaves out what a schedule holds, without leaving anything out.
    draw, draw_report, draw_front, draw_plan
        A picture of views, a page of views with a table, a picture of a front of memory and time, or of a plan; see
        :mod:`pipeplan.drawing`, which formats do not know.
    explains
        Whether its pictures also say why ranks idle.
    read
        What a text holds. Takes the text, a name for messages, and whether an op that stands twice is left for the checker
        to report; raises FormatError for a text that is not right, and InvalidScheduleError for ops that make no schedule.
    recognises
        Whether a text is of this format rather than another one of the same ending; None for the one that is meant where
        no other format recognises the text.
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
    write_timeline: Callable[[Outcome], str] | None = None
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
        """Return the contents that the format can hold, each with its writer."""
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
        """The last part of its ending: ``.json`` of ``.trace.json``."""
        return "." + self.ending.rpartition(".")[2]


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
    """Return the sort key of a format: its first content, then its name; formats that are only read come last."""
    return next(
        (turn for turn, content in enumerate(_ORDER) if content in declared.writers), len(_ORDER)
    ), declared.name


class _Versioned(msgspec.Struct):
    version: int


def other_version(text: str, known: int) -> str | None:
    """Return a message about a file of another version than the known one; None for the known one and other files."""
    try:
        found = msgspec.json.decode(text, type=_Versioned).version
    except (msgspec.DecodeError, RecursionError):
        return None
    if found == known:
        return None
    newer = ": a newer pipeplan wrote it, which reads it" if found > known else ""
    return f"it is of version {found}; this pipeplan reads version {known}{newer}"
