"""A file in the format that the suffix of another file selects."""

from __future__ import annotations

from pathlib import Path

from pipeplan.answers.answers import contents_of, word_for
from pipeplan.answers.exporting.exports import ExportOptions, require_trainer
from pipeplan.answers.outputs import content_as, format_of, placed, require_outputs, write_settings
from pipeplan.answers.simulating.simulate import ordered
from pipeplan.answers.sources import file_of, opened, timeline_of_run
from pipeplan.costs import Costs, Settings
from pipeplan.drawing import Look
from pipeplan.formats import Training, read_file
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.files import Written, replacing, require_apart
from pipeplan.model import Schedule, Timeline
from pipeplan.strategies import Strategy


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
    wanted = options.rearrangement
    if wanted:
        if not isinstance(content, Schedule):
            raise InputError(f"{source} holds {word_for(content)}: only the ops of a schedule can be rearranged")
        content = wanted(content)
    contents = contents_of(content)
    chosen = format_of(target, contents, _in_words(content))
    if chosen.write_settings is None:
        require_trainer(chosen, options)
    schedule = content.schedule if isinstance(content, Timeline) else content
    if chosen.write_settings is not None and isinstance(schedule, Schedule):
        training: Training = placed(options, target)
        written = chosen.write_settings(schedule, training)
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
    default = Settings()
    changed = next((name for name, value in vars(settings).items() if value != getattr(default, name)), None)
    if changed is not None:
        raise InputError(
            f"{changed} does not apply to a file that is converted; with --to it is exported", field=changed
        )
    if path is None:
        assert named is not None
        return named
    run = timeline_of_run(path)
    return read_file(path) if run is None else run


def _in_words(content: Schedule | Timeline | Costs) -> str:
    return "a schedule, which has no times (--to simulates it)" if isinstance(content, Schedule) else word_for(content)
