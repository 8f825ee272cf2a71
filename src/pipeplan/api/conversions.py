"""A file in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from pipeplan.api.outputs import (
    FilePath,
    content_as,
    contents_of,
    format_of,
    placed,
    require_outputs,
    word_for,
    write_settings,
)
from pipeplan.api.pictures import Look
from pipeplan.costs import Costs
from pipeplan.errors import InputError
from pipeplan.files import path_of, replacing, require_apart
from pipeplan.formats import Training, holds_run, read_file, read_run
from pipeplan.model import Schedule, Timeline
from pipeplan.passes import Rearrangement


def convert(
    source: FilePath,
    target: FilePath,
    /,
    *,
    split_backward: bool = False,
    retime: bool = False,
    merge_backward: bool = False,
    **look: Unpack[Look],
) -> tuple[Path, ...]:
    """Turn a file that holds a schedule, a timeline or costs into another format; nothing is simulated.

    Gives what was written: the target, and the files that it names.

    Parameters
    ----------
    source, target
        The files; their endings choose the formats, which ``docs/reference/formats.md`` lists. The source may also be the
        folder of a run's traces, of which the timeline of median length is taken.
    split_backward, retime, merge_backward
        What is done to a schedule's order of ops, one after the other: full backwards are split into one for the inputs and
        one for the weights; weight gradients move into idle steps before them; the two halves of a backward are merged
        where they stand side by side.
    **look
        Of pictures: ``theme`` and ``size``.

    Raises
    ------
    UnknownNameError
        For an ending that nobody knows.
    InputError
        If a file cannot be read or written, the target is the source, the source does not hold what the target's format
        does, such as times, or a timeline's ops are to be rearranged.
    PipeplanError
        For a file that is broken, and for what the passes cannot do.
    """
    wanted = Rearrangement(split_backward=split_backward, retime=retime, merge_backward=merge_backward)
    source, target = path_of(source, "the input"), path_of(target, "the output")
    require_outputs([target])
    require_apart([target], [source])
    found = read_run(source).typical if holds_run(source) else read_file(source)
    if wanted:
        if not isinstance(found, Schedule):
            raise InputError(f"{source} holds {word_for(found)}: only the ops of a schedule can be rearranged")
        found = wanted(found)
    contents = contents_of(found)
    chosen = format_of(target, contents, _in_words(found))
    schedule = found.schedule if isinstance(found, Timeline) else found
    if chosen.write_settings is not None and isinstance(schedule, Schedule):
        settings = chosen.write_settings(schedule, placed(Training(), target))
        require_apart([target, *map(Path, settings.files)], [source])
        return write_settings(settings, target)
    with replacing(target) as temporary:
        if chosen.convert_schedule is not None and isinstance(schedule, Schedule):
            temporary.write_bytes(chosen.convert_schedule(schedule).encode())
        else:
            temporary.write_bytes(content_as(chosen, contents, **look))
    return (target,)


def _in_words(found: Schedule | Timeline | Costs) -> str:
    """What a file holds; of a schedule, also how it comes to have times."""
    return "a schedule, which has no times (export simulates it)" if isinstance(found, Schedule) else word_for(found)
