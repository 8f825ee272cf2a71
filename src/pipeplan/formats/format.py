"""What a format is: a row of the table of formats, from which everything that names formats derives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pipeplan.costs import Costs
from pipeplan.formats.training import TrainerSettings, Training
from pipeplan.model import MemoryUse, Schedule, Timeline

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
"""What a file can be read as."""


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
        """What it can hold, each with its writer."""
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
