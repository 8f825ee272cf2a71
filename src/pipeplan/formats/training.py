"""What a trainer's settings say beside the schedule: layers, batch, replicas, and the release that they are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral
from typing import Any, TypedDict

from pipeplan.costs import COUNT, Range, Setting, require_settings, table_of
from pipeplan.errors import InputError, ShapeError
from pipeplan.model import shortened


def _said(default: Any = None, **about: Any) -> Any:
    """A field of :class:`Training` with its :class:`~pipeplan.costs.Setting`, whose name is the field's."""
    return field(default=default, metadata={"setting": {"group": "training", **about}})


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
        The release that is trained with; None: the newest one that can be installed and is known, and for PyTorch's
        schedules with communication (``torch-csv-comms``) the installed one where there is one.

    Raises
    ------
    InputError
        For a number or a text that cannot be, with the name of the attribute as its ``field``.
    """

    layers: tuple[int, ...] | None = None
    mtp_layers: int = _said(
        0, kind="count", title="Prediction layers", range=Range(0, most=1_000), flags=("--mtp",),
        help="Layers that predict further tokens (multi-token prediction).",
    )  # fmt: skip
    microbatch_size: int = _said(
        1, kind="count", title="Microbatch", help="Sequences in a microbatch.", range=COUNT
    )  # fmt: skip
    sequence_length: int | None = _said(
        kind="count", title="Sequence", help="Tokens in a sequence.", range=COUNT
    )  # fmt: skip
    data_parallel: int = _said(
        1, kind="count", title="Replicas", help="Replicas of the pipeline.", range=COUNT
    )  # fmt: skip
    csv: str | None = _said(
        kind="text", title="CSV", help="The path of the schedule's CSV on the machines that train.", longest=10_000
    )  # fmt: skip
    trainer_version: str | None = _said(
        kind="text", title="Release",
        help="The trainer's release (default: the newest known one; for torch-csv-comms the installed PyTorch).",
    )  # fmt: skip

    def __post_init__(self) -> None:
        require_settings(TRAINING_SETTINGS, **{name: getattr(self, name) for name in TRAINING_SETTINGS})
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


class TrainingGiven(TypedDict, total=False):
    """What is said beside the schedule as keyword arguments; the layers of each stage are one of pipeplan's settings."""

    mtp_layers: int
    microbatch_size: int
    sequence_length: int | None
    data_parallel: int
    csv: str | None
    trainer_version: str | None


TRAINING_SETTINGS = table_of(
    *(Setting(name=each.name, **each.metadata["setting"]) for each in fields(Training) if "setting" in each.metadata)
)
"""Each setting of them by its name."""

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
