"""What a trainer's settings say beside the schedule: layers, batch, replicas, and the release that they are for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypedDict

from pipeplan.errors import InputError, ShapeError


def _said(default: Any, help_text: str, *flags: str, least: int | None = None) -> Any:
    """A field of :class:`Training` with its help, its flags beside its own name's, and its least value."""
    return field(default=default, metadata={"help": help_text, "flags": flags, "least": least})


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
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
        The release that is trained with; None: the newest one that can be installed and is known.

    Raises
    ------
    ShapeError
        For a number that cannot be, with the name of the attribute as its ``field``.
    InputError
        For a CSV that can be no file.
    """

    layers: tuple[int, ...] | None = None
    mtp_layers: int = _said(0, "Layers that predict further tokens (multi-token prediction).", "--mtp", least=0)
    microbatch_size: int = _said(1, "Sequences in a microbatch.", least=1)
    sequence_length: int | None = _said(None, "Tokens in a sequence.", least=1)
    data_parallel: int = _said(1, "Replicas of the pipeline.", least=1)
    csv: str | None = _said(None, "The path of the schedule's CSV on the machines that train.")
    trainer_version: str | None = _said(None, "The trainer's release; the newest known one without it.")

    def __post_init__(self) -> None:
        for each in fields(self):
            least, value = each.metadata.get("least"), getattr(self, each.name)
            if least is not None and value is not None and value < least:
                raise ShapeError(f"{each.name} must be at least {least}, not {value}", field=each.name)
        if self.layers is not None and (min(self.layers, default=0) < 0 or not sum(self.layers)):
            raise ShapeError(
                f"layers per stage are numbers of at least 0, and not all of them 0, not {self.layers}",
                field="layers_per_stage",
            )
        if self.csv is not None and (not self.csv or "\0" in self.csv):
            raise InputError(f"csv is no path of a file: {self.csv!r}", field="csv")

    def layers_of(self, stages: int) -> tuple[int, ...] | None:
        """The layers of this many stages. Raises ShapeError where they are not one number a stage."""
        if self.layers is not None and len(self.layers) != stages:
            raise ShapeError(
                f"layers per stage: {len(self.layers)} values for {stages} stages", field="layers_per_stage"
            )
        return self.layers


class TrainingGiven(TypedDict, total=False):
    """What is said beside the schedule as keyword arguments; the layers of each stage are one of pipeplan's settings."""

    mtp_layers: int
    microbatch_size: int
    sequence_length: int | None
    data_parallel: int
    csv: str | None
    trainer_version: str | None


TRAINING_NAMES = tuple(TrainingGiven.__annotations__)
"""What can be said of a training, by name."""


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
