"""Schedules in other tools' formats."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Unpack, cast, final

from msgspec import UNSET, UnsetType

from pipeplan.api.arguments import Given, ScheduleLike, asked
from pipeplan.api.outputs import export_formats, exported, placed, require_export, write_settings
from pipeplan.api.results import Result
from pipeplan.api.simulations import simulated, timed
from pipeplan.api.sources import resolve
from pipeplan.costs import Settings
from pipeplan.errors import InputError
from pipeplan.files import is_stream
from pipeplan.formats import TRAINING_NAMES, Format, TrainerSettings, Training, TrainingGiven
from pipeplan.model import Schedule
from pipeplan.passes import Rearrangement

_CONFIGURATION = (".toml", ".yaml", ".yml", ".json")
"""Endings of files that hold values by name."""


class ExportGiven(Given, TrainingGiven, total=False):
    """The settings as keywords, and what a trainer must know beside them."""


@final
class Export(str):
    """The text of an export, which can also be saved.

    Attributes
    ----------
    files
        The text of each file that it names, by the path that it names it with: a trainer's settings name a CSV.
    warnings
        What goes wrong with a trainer's settings, and what was changed in an order for its trainer, a sentence each.
    """

    files: Mapping[str, str] = MappingProxyType({})
    warnings: tuple[str, ...] = ()
    _meant: tuple[str, Schedule, Training] | None = None

    @classmethod
    def of_settings(cls, to: str, schedule: Schedule, training: Training) -> Export:
        """The settings of a trainer for a schedule. Raises ShapeError where the trainer cannot run it."""
        made = _settings(to, schedule, training)
        export = cls(made.text)
        export.files, export.warnings, export._meant = dict(made.files), made.warnings, (to, schedule, training)
        return export

    def written_to(self, path: str | os.PathLike[str]) -> TrainerSettings:
        """What :meth:`save` writes: with the name of a CSV beside that file, where none was given; in a pipe, itself.

        Raises InputError for a trainer's settings under the name of a configuration file: they are code.
        """
        if self._meant is None or is_stream(Path(path)):
            return TrainerSettings(text=self)
        to, schedule, training = self._meant
        if (suffix := Path(path).suffix.lower()) in _CONFIGURATION:
            right = Path(path).with_suffix(export_formats()[to].ending)
            raise InputError(f"the settings of {to} are no {suffix} file: write them to {right}", field="output")
        return _settings(to, schedule, placed(training, Path(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, as a whole or not at all, and the files that it names.

        A CSV that was given no name gets one beside the file. Raises InputError where writing is not possible.
        """
        write_settings(self.written_to(path), Path(path))

    def print(self) -> None:
        """Print it."""
        print(self, end="")


def export(
    schedule: ScheduleLike | UnsetType = UNSET,
    /,
    to: str = "torch-csv",
    *,
    split_backward: bool = False,
    retime: bool = False,
    merge_backward: bool = False,
    **settings: Unpack[ExportGiven],
) -> Export:
    """A schedule in another tool's format, as text.

    Parameters
    ----------
    schedule
        What :func:`pipeplan.simulate` takes. A timeline is exported as it stands: with the times that were measured, or
        simulated before unless costs are given here.
    to
        The format, by its name in ``pipeplan export --to``; ``docs/reference/formats.md`` lists them.
    split_backward, retime, merge_backward
        What is done to the order of ops before; see :func:`pipeplan.convert`.
    **settings
        Shape and costs; for a trainer's settings also ``microbatch_size``, ``sequence_length``, ``data_parallel``,
        ``mtp_layers``, ``csv`` and ``trainer_version`` (:class:`~pipeplan.formats.training.Training`), and
        ``layers_per_stage`` for the transformer layers of each stage.

    Raises
    ------
    UnknownNameError
        For an unknown format.
    FormatError, ShapeError
        For a schedule that the format has no words for.
    InputError
        For what is said of a training to a format that holds no trainer's settings.
    PipeplanError
        For what :func:`pipeplan.simulate` raises it.

    Examples
    --------
    >>> print(pipeplan.export("1f1b", to="torch-csv", ranks=2, microbatches=2))
    0F0,0F1,0B0,0B1
    1F0,1B0,1F1,1B1
    <BLANKLINE>
    """
    wanted = Rearrangement(split_backward=split_backward, retime=retime, merge_backward=merge_backward)
    require_export(to)
    said: dict[str, Any] = {name: value for name, value in settings.items() if name in TRAINING_NAMES}
    given = cast("Given", {name: value for name, value in settings.items() if name not in TRAINING_NAMES})
    meant, known = asked(schedule, given)
    chosen = export_formats()[to]
    _require_trainer(chosen, said)
    training = Training(**said)
    if chosen.write_settings is not None:
        known, training = _laid_out(known, training)
    result = simulated(wanted(resolve(meant, known)), known) if wanted else timed(meant, known)
    if chosen.write_settings is None:
        return _of_schedule(chosen, result, training)
    made = Export.of_settings(to, result.schedule, training)
    if training.csv is not None and not made.files:
        raise InputError(
            f"the settings of {to} name no CSV: it makes the order of ops from them by itself", field="csv"
        )
    return made


def _of_schedule(chosen: Format, result: Result, training: Training) -> Export:
    """Return a result in a format that holds no trainer's settings."""
    if chosen.write_for_release is None:
        export = Export(exported(result, chosen.name))
    else:
        export = Export(chosen.write_for_release(result.schedule, training.trainer_version))
    if chosen.warnings is not None:
        export.warnings = chosen.warnings(result.schedule)
    return export


def _settings(to: str, schedule: Schedule, training: Training) -> TrainerSettings:
    write = export_formats()[to].write_settings
    assert write is not None
    return write(schedule, training)


def _laid_out(settings: Settings, training: Training) -> tuple[Settings, Training]:
    """The transformer layers of each stage go to the trainer, except those that costs per layer are laid out by.

    Among the layers of costs are the embedding and the head, which a trainer does not count.
    """
    if settings.layers is not None or settings.layers_per_stage is None:
        return settings, training
    return replace(settings, layers_per_stage=None), replace(training, layers=settings.layers_per_stage)


def _require_trainer(chosen: Format, said: Mapping[str, Any]) -> None:
    """Refuse what is said of a training to a format that has no use for it. Raises InputError."""
    used = {"trainer_version"} if chosen.write_for_release is not None else set()
    unused = [name for name in said if name not in used]
    if unused and chosen.write_settings is None:
        name = unused[0]
        trainers = ", ".join(each.name for each in export_formats().values() if each.write_settings is not None)
        raise InputError(f"{name} is for the settings of a trainer ({trainers}), not for {chosen.name}", field=name)
