"""``pipeplan check`` and ``export``: files of schedules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from pipeplan.answers import (
    CheckOptions,
    Export,
    ExportOptions,
    checked,
    converted,
    export_formats,
    exported_to,
    file_of,
)
from pipeplan.cli.answers import deliver, tell, tell_written
from pipeplan.cli.options import OUTPUT, LineSettings, command, request
from pipeplan.cli.refusals import unknown_option
from pipeplan.drawing import LookOptions
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.files import STANDARD_INPUT, require_apart, write_text
from pipeplan.foundation.names import FormatName as BuiltInFormat
from pipeplan.foundation.names import ScheduleName as BuiltInSchedule
from pipeplan.trainers import layout_trainers


@command
def check(file: str, /, *, options: CheckOptions, settings: LineSettings, json: bool = False) -> int:
    """Check that a schedule is valid, and that a trainer can run it.

    Checks structure, order, deadlocks and channels, and with `--memory-limit` the memory of every rank. Notes name
    requirements that not every runtime meets, such as sends that do not block. Exits with 1 if the schedule is invalid.

    Parameters
    ----------
    file
        A CSV, JSON or text file with a schedule or a timeline, whose order and simulated times are checked, `-` for standard
        input, or a schedule's name.
    """
    query = request((file,), settings)
    verdict = checked(file, options, query.settings)
    deliver(verdict, json=json)
    return 0 if verdict.valid else 1


Source: TypeAlias = Annotated[BuiltInSchedule | str, Parameter(show_choices=False, allow_leading_hyphen=True)]
"""A schedule's name, a file or a layout, which may be the flags of an uneven division."""

FormatName: TypeAlias = Annotated[BuiltInFormat | str, Parameter(show_choices=False)]

_TO = Parameter(
    group=OUTPUT,
    help="Format to write, one of those that `pipeplan export` lists (default: by the suffix of the output). Of a layout, "
    f"the trainer: {', '.join(layout_trainers())}.",
)
_FILE = Parameter(
    name=["--output", "-o"],
    group=OUTPUT,
    help="File to write, also as the second argument (default: stdout). Without `--to`, its suffix selects the format, such "
    "as .csv, .json, .html or .megatron.sh; an unknown suffix lists all.",
)


@command
def export(
    name: Source | None = None,
    /,
    output: Annotated[Path | None, _FILE] = None,
    *,
    to: Annotated[FormatName | None, _TO] = None,
    options: ExportOptions,
    looks: LookOptions,
    settings: LineSettings,
) -> int:
    """Write a schedule, a timeline, costs or a layout in another tool's format.

    Settings of a trainer refer to a CSV file with the order of ops, which an output or `--csv` writes, too. With `--to`, a
    schedule is simulated if the format has times. Without `--to`, a file is converted to the format of the output's suffix,
    and nothing is simulated; without an output, too, lists the formats, and the exit code is 2 if a source is given.

    Parameters
    ----------
    name
        Name of a schedule; a file with a schedule, a timeline or costs; or, with `--to`, a layout such as
        `Et*3|t*4|t*3L`, or a file that contains one. Default: 1f1b.
    """
    if name is not None and name.startswith("-") and name != STANDARD_INPUT and " " not in name:
        names = (name for setting in export.settings.values() for name in setting.options)  # type: ignore[attr-defined]
        raise InputError(unknown_option(name, names, "export"))
    if output == Path(STANDARD_INPUT):
        raise InputError("'-' is standard input: the output is a file, whose suffix selects the format")
    if to is None and output is None:
        return _listed(asking=name is None)
    query = request(() if name is None else (name,), settings, writes=() if output is None else (output,))
    if to is None:
        assert output is not None
        files = converted(query.name, output, query.settings, options, looks.look)
        tell_written(files)
        for warning in files.warnings:
            tell(f"warning: {warning}")
        return 0
    unused = next(iter(looks.look), None)
    if unused is not None:
        raise InputError(f"{unused} is for pictures, whose format the suffix of the output selects: drop it or --to")
    text = exported_to(to, query.name, query.settings, options)
    read = [path for path in (file_of(query.name), *settings.files) if path is not None]
    if output is None:
        sys.stdout.write(text.text)
        _write_named(text, read, wanted=options.csv is not None)
    else:
        require_apart([output], read)
        named = [Path(path) for path in text.written_to(output).files]
        require_apart([output, *named], read)
        text.save(output)
        tell(f"wrote {output}")
        for path in named:
            tell(f"wrote {path}, which {output} refers to; --csv sets its path")
    for warning in text.warnings:
        tell(f"warning: {warning}")
    return 0


def _listed(*, asking: bool) -> int:
    """List the formats. Return 2 if a source was given, which needs one of them."""
    from pipeplan.answers.parts import facts, show  # brings rich, which an export does without

    show(facts((format.name, f"{format.help} ({format.ending})") for format in export_formats().values()))
    if asking:
        return 0
    tell("pipeplan: choose one of these formats with --to, or an output file")
    return 2


def _write_named(text: Export, read: Sequence[Path], *, wanted: bool) -> None:
    """Write the files that settings on stdout name, if that is wanted, except inputs, which are never overwritten."""
    for name, content in text.files.items():
        path = Path(name)
        if not wanted:
            tell(f"not written: {path}, which these settings refer to; -o FILE writes both, --csv {path} this one")
        elif any(path.exists() and path.samefile(other) for other in read if other.exists()):
            tell(
                f"{path}, which these settings refer to, is an input and is not overwritten: choose another file with --csv"
            )
        else:
            write_text(path, content)
            tell(f"wrote {path}, which these settings refer to; --csv sets its path")
