"""Schedules, timelines, costs and layouts in other tools' formats, and files in the format of another file's suffix."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, final

from msgspec import UNSET, UnsetType

from pipeplan.answers.answers import contents_of, word_for
from pipeplan.answers.arguments import ScheduleLike, apart, asked
from pipeplan.answers.outputs import (
    content_as,
    export_format,
    export_formats,
    exported,
    format_of,
    placed,
    require_outputs,
    require_own_ending,
    with_settings,
    write_settings,
)
from pipeplan.answers.simulating.simulate import ordered, simulated, timed
from pipeplan.answers.sources import file_of, label, opened, resolve, timeline_of_run
from pipeplan.costs import Costs, Options, Settings, option, options_of
from pipeplan.drawing import Look
from pipeplan.formats import (
    Format,
    TrainerSettings,
    Training,
    is_readable,
    is_standard_input,
    parse_standard_input,
    read_file,
    standard_input_text,
)
from pipeplan.foundation.errors import FormatError, InputError
from pipeplan.foundation.files import MEBIBYTE, Written, is_stream, read_text, replacing, require_apart
from pipeplan.foundation.names import FormatName
from pipeplan.foundation.records import Evidence, Record, holding
from pipeplan.model import Schedule, Timeline, counted
from pipeplan.passes import Rearrangement
from pipeplan.strategies import Strategy, is_strategy
from pipeplan.trainers import TrainerLayout, find_layout, layout_trainers, read_layout, write_layout

if TYPE_CHECKING:
    from pipeplan.answers.keywords import ExportKeywords

_LARGEST_LAYOUT = MEBIBYTE
"""Maximum size of a file with a layout."""


@dataclass(frozen=True, kw_only=True)
class RearrangementOptions(Options):
    """Passes over a schedule's order of ops, applied one after the other."""

    split_backward: bool = option(
        False,
        kind="flag",
        group="order",
        usual=False,
        help="Split every full backward pass into one for the inputs and one for the weights.",
    )
    retime: bool = option(
        False, kind="flag", group="order", usual=False, help="Move weight gradients into earlier idle steps."
    )
    merge_backward: bool = option(
        False, kind="flag", group="order", usual=False, help="Merge adjacent halves of a backward pass."
    )

    @property
    def rearrangement(self) -> Rearrangement:
        """The passes that are wanted. Raises InputError for passes that undo each other."""
        return Rearrangement(split_backward=self.split_backward, retime=self.retime, merge_backward=self.merge_backward)


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
    """Name of the format; empty for a layout, which any file may hold."""

    origin = Evidence[tuple[Schedule, Training] | None]()
    """Schedule and training of a trainer's settings, which :meth:`save` writes for the place of the file."""

    def __str__(self) -> str:
        return self.text

    def written_to(self, path: str | os.PathLike[str]) -> TrainerSettings:
        """Return the content that :meth:`save` writes, with a CSV next to it unless ``csv`` is set; to a pipe, the text.

        Raises InputError for an ending of another format.
        """
        if self.to:
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


def export(
    schedule: ScheduleLike | UnsetType = UNSET, /, to: FormatName | str = "torch-csv", **options: Unpack[ExportKeywords]
) -> Export:
    """Export a schedule in another tool's format, or a layout in another trainer's, as text.

    Parameters
    ----------
    schedule
        Argument of :func:`pipeplan.simulate`. A timeline keeps its times: measured ones, or simulated ones
        unless costs are given here. A layout is a text, or a file that contains one: Megatron-LM's ``Et*3|t*4|t*3L``
        or its flags, Megatron-Bridge's list of stages, torchtitan's ``module_fqns_per_model_part``, or numbers of
        layers such as ``3+4+3``; it takes neither passes nor settings.
    to
        The format, by its name in ``pipeplan export --to``; ``docs/reference/formats.md`` lists them. For a layout,
        the trainer: ``megatron``, ``bridge`` or ``torchtitan``.
    **options
        Passes over the order of ops, settings of a trainer
        (:class:`~pipeplan.formats.Training`), and shape and costs; ``layers_per_stage`` are a trainer's
        transformer layers of each stage.

    Other Parameters
    ----------------
    mtp_layers
        Number of multi-token prediction layers (default: 0).
    microbatch_size
        Sequences per microbatch (default: 1).
    sequence_length
        Sequence length in tokens.
    data_parallel
        Number of pipeline replicas (default: 1).
    csv
        Path of the schedule's CSV file on the training machines.
    trainer_version
        Release of the trainer (default: the newest known one; for torch-csv-comms the installed PyTorch).
    split_backward
        Split every full backward pass into one for the inputs and one for the weights.
    retime
        Move weight gradients into earlier idle steps.
    merge_backward
        Merge adjacent halves of a backward pass.
    settings, config
        Settings of shape and costs, as a value or a mapping, or in a config file; the other keywords override them. All
        are keywords, too: ``docs/reference/options.md`` lists them.

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
    >>> print(pipeplan.export("Et*2|t*2|tL", to="torchtitan"))
    tok_embeddings,layers.0,layers.1 layers.2,layers.3 layers.4,norm,lm_head
    <BLANKLINE>
    """
    own, keywords = apart(ExportOptions, options)
    return exported_to(to, *asked(schedule, keywords), options_of(ExportOptions, own))


def exported_to(to: str, source: ScheduleLike, settings: Settings, options: ExportOptions) -> Export:
    """See :func:`export`."""
    source, layout = _with_layout(source, to)
    if layout is not None:
        for name in (*_changed(options), *settings.changed):
            raise InputError(f"{name} does not apply to a layout, which is translated to {to}", field=name)
        text = write_layout(layout, to.lower())
        return holding(Export(text=f"{text}\n", files={}, warnings=()), to="", origin=None)
    chosen = export_format(to)
    require_trainer(chosen, options, used=() if chosen.write_for_release is None else ("trainer_version",))
    wanted = options.rearrangement
    if chosen.write_settings is None:
        return _of_schedule(chosen, source, settings, wanted, options)
    layers = None if settings.layers is not None else settings.layers_per_stage
    # Without costs per layer, they are the trainer's layers of each stage alone.
    schedule = _order(source, settings.replace(layers_per_stage=None) if settings.layers is None else settings, wanted)
    training = with_settings(options, settings, schedule.stages)
    if isinstance(layers, str):
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


def _with_layout(source: ScheduleLike, to: str) -> tuple[ScheduleLike, TrainerLayout | None]:
    """Return the layout that a source is or contains, if ``to`` is a trainer with layouts; and the source of a schedule."""
    if to.lower() not in layout_trainers() or not isinstance(source, str | os.PathLike):
        return source, None
    text = os.fspath(source)
    if is_standard_input(source):
        content = standard_input_text()
        layout = find_layout(content)
        return (source, layout) if layout is not None else (parse_standard_input(content), None)
    if not os.path.isfile(text):
        return source, None if isinstance(source, os.PathLike) or is_strategy(text) else find_layout(text)
    may_hold_schedule = is_readable(text)
    if may_hold_schedule and os.path.getsize(text) > _LARGEST_LAYOUT:
        return source, None
    try:
        content = read_text(Path(text), limit=_LARGEST_LAYOUT, what="layout file")
    except FormatError:  # a packed schedule
        content = ""
    return source, find_layout(content) if may_hold_schedule else read_layout(content)


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
            "head: export the layout itself first",
            field="layers_per_stage",
        )
    if training.mtp_layers not in (0, layout.mtp_layers):
        raise InputError(
            f"mtp_layers is {training.mtp_layers}, but the layout has {counted(layout.mtp_layers, 'layer')} of multi-token "
            "prediction",
            field="mtp_layers",
        )


def require_trainer(chosen: Format, training: Training, used: Collection[str] = ()) -> None:
    """Raise InputError for training options that the format does not use, apart from the ``used`` ones."""
    if chosen.write_settings is not None:
        return
    of_training = {field.name for field in fields(Training)}.difference(used)
    for name in filter(of_training.__contains__, _changed(training)):
        trainers = ", ".join(entry.name for entry in export_formats().values() if entry.write_settings is not None)
        raise InputError(f"{name} is for the settings of a trainer ({trainers}), not for {chosen.name}", field=name)


def _changed(options: Options) -> list[str]:
    """Return the names of the options that differ from their defaults."""
    return [field.name for field in fields(options) if getattr(options, field.name) != field.default]


def converted(source: str, target: Path, settings: Settings, options: ExportOptions, look: Look) -> Written:
    """Write a schedule, a timeline or costs in the format of the target's suffix. Nothing is simulated.

    Parameters
    ----------
    source
        Name of a schedule; or a file, whose content is taken as it is, or the folder of a run's traces, of which the
        timeline of median length is taken.
    target
        File to write; ``warnings`` of the result say what was changed in a schedule.
    settings
        Shape and costs of a schedule that has only a name. A file has its own.
    options
        Passes over the order of ops, and settings of a trainer.
    look
        Look of a picture.

    Raises
    ------
    UnknownNameError
        For an unknown suffix.
    InputError
        If a file cannot be read or written, the target is the source, the source does not hold what the target's format
        does, such as times, or a timeline's ops are to be rearranged.
    PipeplanError
        For a file that is broken, and for what the passes cannot do.
    """
    require_outputs([target])
    path = file_of(source)
    sources = [] if path is None else [path]
    require_apart([target], sources)
    content = _content(source, path, settings)
    if wanted := options.rearrangement:
        if not isinstance(content, Schedule):
            raise InputError(f"{source} holds {word_for(content)}: only the ops of a schedule can be rearranged")
        content = wanted(content)
    contents = contents_of(content)
    without_times = "a schedule, which has no times (--to simulates it)"
    chosen = format_of(target, contents, without_times if isinstance(content, Schedule) else word_for(content))
    require_trainer(chosen, options)
    schedule = content.schedule if isinstance(content, Timeline) else content
    if chosen.write_settings is not None and isinstance(schedule, Schedule):
        written = chosen.write_settings(schedule, placed(with_settings(options, settings, schedule.stages), target))
        require_apart([target, *map(Path, written.files)], sources)
        return write_settings(written, target)
    with replacing(target) as temporary:
        if chosen.convert_schedule is not None and isinstance(schedule, Schedule):
            temporary.write_bytes(chosen.convert_schedule(schedule).encode())
        else:
            temporary.write_bytes(content_as(chosen, contents, **look))
    if chosen.warnings is None or not isinstance(schedule, Schedule):
        return Written.of(target)
    return Written.of(target, warnings=chosen.warnings(schedule))


def _content(source: str, path: Path | None, settings: Settings) -> Schedule | Timeline | Costs:
    named = opened(source) if path is None else None
    if isinstance(named, Strategy):
        return ordered(named, settings)
    for name in settings.changed:
        raise InputError(f"{name} does not apply to a file that is converted; with --to it is exported", field=name)
    if path is None:
        assert named is not None
        return named
    run = timeline_of_run(path)
    return read_file(path) if run is None else run
