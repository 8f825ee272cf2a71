"""Which trainers run a schedule, and why others do not."""

from __future__ import annotations

from dataclasses import dataclass

from pipeplan.api.outputs import export_formats
from pipeplan.errors import PipeplanError
from pipeplan.formats import Training
from pipeplan.model import Schedule

_TITLES = {"torch-csv-comms": "PyTorch", "torchtitan": "torchtitan", "megatron": "Megatron-LM"}
"""Each trainer by the format that is written for it."""


@dataclass(frozen=True, slots=True)
class TrainerVerdict:
    """Whether a trainer runs a schedule; ``reason`` is empty where it does."""

    trainer: str
    format: str
    reason: str = ""

    @property
    def runs(self) -> bool:
        """Whether it does."""
        return not self.reason


def trainers_of(schedule: Schedule) -> tuple[TrainerVerdict, ...]:
    """What PyTorch's runtime, torchtitan and Megatron-LM say to a schedule: whether it can be written for them."""
    return tuple(TrainerVerdict(title, name, refusal(name, schedule)) for name, title in _TITLES.items())


def refusal(name: str, schedule: Schedule) -> str:
    """Return why a schedule cannot be written in the format of this name; empty where it can."""
    chosen = export_formats()[name]
    try:
        if chosen.write_settings is not None:
            chosen.write_settings(schedule, Training())
        elif chosen.write_schedule is not None:
            chosen.write_schedule(schedule)
    except PipeplanError as error:
        return str(error).partition("\n")[0]
    return ""
