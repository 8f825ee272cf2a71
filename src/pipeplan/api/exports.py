"""Schedules in other tools' formats."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Unpack, final

from msgspec import UNSET, UnsetType

from pipeplan.api.answers import contents_of
from pipeplan.api.arguments import ScheduleLike, apart, asked, takes
from pipeplan.api.conversions import RearrangementOptions
from pipeplan.api.keywords import ExportKeywords
from pipeplan.api.outputs import (
    export_format,
    export_formats,
    exported,
    placed,
    require_own_ending,
    with_blocks,
    write_settings,
)
from pipeplan.api.simulating.simulate import ordered, simulated, timed
from pipeplan.api.sources import label, opened, resolve
from pipeplan.costs import ConfiguredSettings, Settings, options_of
from pipeplan.errors import InputError
from pipeplan.files import is_stream
from pipeplan.formats import Format, TrainerSettings, Training
from pipeplan.model import Schedule, Timeline, counted
from pipeplan.names import FormatName
from pipeplan.passes import Rearrangement
from pipeplan.records import Evidence, Record, holding
from pipeplan.trainers import TrainerLayout, read_layout


@dataclass(frozen=True, kw_only=True)
class ExportOptions(RearrangementOptions, Training):
    """Options of an export: passes over the order of ops, and settings of a trainer."""


@final
class Export(Record, frozen=True, kw_only=True):
    """Exported schedule, which can be saved; ``str()`` and ``print()`` give its text.

    Attributes
    ----------
    text
        The text.
    files
        The text of each file that it names, by the path that it names it with: a trainer's settings name a CSV.
    warnings
        Problems of a trainer's settings, and changes of an order for its trainer, a sentence each.
    """

    text: str
    files: dict[str, str]
    warnings: tuple[str, ...]

    to = Evidence[str]()
    """Name of the format."""

    origin = Evidence[tuple[Schedule, Training] | None]()
    """Schedule and training of a trainer's settings, which :meth:`save` writes for the place of the file."""

    def __str__(self) -> str:
        return self.text

    def written_to(self, path: str | os.PathLike[str]) -> TrainerSettings:
        """Return the content that :meth:`save` writes, with a CSV next to it unless ``csv`` is set; to a pipe, the text.

        Raises InputError for an ending of another format.
        """
        require_own_ending(self.to, Path(path))
        if self.origin is None or is_stream(Path(path)):
            return TrainerSettings(text=self.text)
        schedule, training = self.origin
        return _settings(self.to, schedule, placed(training, Path(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, as a whole or not at all, and the files that it names.

        A CSV that was given no name gets one next to the file. Raises InputError if writing is not possible, or for an
        ending of another format.
        """
        write_settings(self.written_to(path), Path(path))

    def print(self) -> None:
        """Print it."""
        print(self.text, end="")


@takes(ExportOptions, ConfiguredSettings)
def export(
    schedule: ScheduleLike | UnsetType = UNSET, /, to: FormatName | str = "torch-csv", **options: Unpack[ExportKeywords]
) -> Export:
    """Export a schedule in another tool's format, as text.

    Parameters
    ----------
    schedule
        Argument of :func:`pipeplan.simulate`. A timeline keeps its times: measured ones, or simulated ones
        unless costs are given here.
    to
        The format, by its name in ``pipeplan export --to``; ``docs/reference/formats.md`` lists them.
    **options
        Passes over the order of ops (see :func:`pipeplan.convert`), settings of a trainer
        (:class:`~pipeplan.formats.Training`), and shape and costs; ``layers_per_stage`` are a trainer's
        transformer layers of each stage.

    Raises
    ------
    UnknownNameError
        For an unknown format.
    FormatError, ShapeError
        For a schedule that the format cannot express.
    InputError
        For training options of a format that holds no trainer's settings.
    PipeplanError
        For what :func:`pipeplan.simulate` raises it.

    Examples
    --------
    >>> print(pipeplan.export("1f1b", to="torch-csv", ranks=2, microbatches=2))
    0F0,0F1,0B0,0B1
    1F0,1B0,1F1,1B1
    <BLANKLINE>
    """
    own, keywords = apart(ExportOptions, options)
    return exported_to(to, *asked(schedule, keywords), options_of(ExportOptions, own))


def exported_to(to: str, source: ScheduleLike, settings: Settings, options: ExportOptions) -> Export:
    """See :func:`export`."""
    chosen = export_format(to)
    _require_trainer(chosen, options)
    training: Training = options
    wanted = options.rearrangement
    if chosen.write_settings is None:
        return _of_schedule(chosen, source, settings, wanted, training)
    layers = settings.layers_per_stage
    # Without costs per layer, they are the trainer's layers of each stage alone.
    schedule = _order(source, settings.replace(layers_per_stage=None) if settings.layers is None else settings, wanted)
    if settings.layers is not None:
        training = with_blocks(training, settings, schedule.stages)
    elif isinstance(layers, str):
        layout = read_layout(layers)
        _require_same_mtp(layout, training)
        training = replace(training, layers=layout.layers, mtp_layers=layout.mtp_layers)
    elif layers is not None:
        training = replace(training, layers=layers)
    made = _settings(to, schedule, training)
    if training.csv is not None and not made.files:
        raise InputError(f"csv does not apply to {to}, which generates the order of ops itself", field="csv")
    export = Export(text=made.text, files=dict(made.files), warnings=made.warnings)
    return holding(export, to=to, origin=(schedule, training))


def _of_schedule(
    chosen: Format, source: ScheduleLike, settings: Settings, wanted: Rearrangement, training: Training
) -> Export:
    """Return a schedule in a format that holds no trainer's settings; nothing is simulated for one that holds no times."""
    schedule = _order(source, settings, wanted) if chosen.write_schedule is not None else None
    if schedule is None:
        result = simulated(wanted(resolve(source, settings)), settings) if wanted else timed(source, settings)
        text = exported(contents_of(result), chosen.name)
    elif chosen.write_for_release is not None:
        text = chosen.write_for_release(schedule, training.trainer_version)
    else:
        text = exported(contents_of(schedule), chosen.name)
    warnings = () if chosen.warnings is None or schedule is None else chosen.warnings(schedule)
    return holding(Export(text=text, files={}, warnings=warnings), to=chosen.name, origin=None)


def _order(source: ScheduleLike, settings: Settings, wanted: Rearrangement) -> Schedule:
    """Return the order of ops of a source; that of a timeline is not simulated again."""
    opened_source = opened(source)
    if wanted:
        schedule = ordered(wanted(resolve(opened_source, settings)), settings)
    elif isinstance(opened_source, Timeline):
        return timed(opened_source, settings, called=label(source)).schedule
    else:
        schedule = ordered(opened_source, settings, called=label(source))
    settings.costs(schedule.placement)  # An order needs no costs; those that cannot be are refused nevertheless.
    return schedule


def _settings(to: str, schedule: Schedule, training: Training) -> TrainerSettings:
    write = export_format(to).write_settings
    assert write is not None
    return write(schedule, training)


def _require_same_mtp(layout: TrainerLayout, training: Training) -> None:
    """Raise InputError if a layout has layers of multi-token prediction where an export cannot put them, or too few."""
    if layout.mtp_stage is not None:
        raise InputError(
            "the layout has layers of multi-token prediction on a stage of their own, but an export writes them before the "
            "head: translate the layout with convert",
            field="layers_per_stage",
        )
    if training.mtp_layers not in (0, layout.mtp_layers):
        raise InputError(
            f"mtp_layers is {training.mtp_layers}, but the layout has {counted(layout.mtp_layers, 'layer')} of multi-token "
            "prediction",
            field="mtp_layers",
        )


def _require_trainer(chosen: Format, training: Training) -> None:
    """Raise InputError for training options that the format does not use."""
    used = {"trainer_version"} if chosen.write_for_release is not None else set()
    default = Training()
    changed = [
        entry.name for entry in fields(Training) if getattr(training, entry.name) != getattr(default, entry.name)
    ]
    unused = [name for name in changed if name not in used]
    if unused and chosen.write_settings is None:
        name = unused[0]
        trainers = ", ".join(entry.name for entry in export_formats().values() if entry.write_settings is not None)
        raise InputError(f"{name} is for the settings of a trainer ({trainers}), not for {chosen.name}", field=name)
