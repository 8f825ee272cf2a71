"""``pipeplan check``, ``convert`` and ``export``: files of schedules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from pipeplan.api import (
    CheckOptions,
    ConvertOptions,
    Export,
    ExportOptions,
    LayoutText,
    built_in_formats,
    checked,
    converted,
    converted_layout,
    export_formats,
    exported_to,
    file_of,
    output_endings,
)
from pipeplan.cli.answers import deliver, tell, tell_written
from pipeplan.cli.options import OUTPUT, LineSettings, ScheduleName, command, request
from pipeplan.errors import InputError
from pipeplan.files import path_of, require_apart, write_text
from pipeplan.formats import STANDARD_INPUT
from pipeplan.names import FormatName as BuiltInFormat


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


_TARGET = Parameter(
    help=f"File to write; its suffix selects the format: {' '.join(output_endings(built_in_formats()))}."
)


@command
def convert(source: str, target: Annotated[Path | None, _TARGET] = None, /, *, options: ConvertOptions) -> int:
    """Convert a schedule, a timeline or costs to another format, or a layout to another trainer.

    Nothing is simulated. A layout divides a model's layers into stages; it needs `--to`, and without an output it is
    printed.

    Parameters
    ----------
    source
        File with a schedule, a timeline or costs (.csv, .json); with `--to` a layout such as `Et*3|t*4|t*3L`, or a file that
        contains one.
    """
    if target == Path(STANDARD_INPUT):
        raise InputError("'-' is standard input: the output is a file, whose suffix selects the format")
    if options.to is not None:
        layout = converted_layout(source, target, options)
        if isinstance(layout, LayoutText):
            layout.print()
        else:
            tell_written(layout)
        return 0
    files = converted(path_of(source, "the file"), target, options)
    tell_written(files)
    for warning in files.warnings:
        tell(f"warning: {warning}")
    return 0


if TYPE_CHECKING:
    FormatName = str
else:
    FormatName: Any = Annotated[BuiltInFormat | str, Parameter(show_choices=False)]

_FORMATS = "\n".join(f"- {entry.name}: {entry.help}" for entry in export_formats(built_in_formats()).values())
_TO = Parameter(group=OUTPUT, help=f"Format to write; without it, list the formats.\n\n{_FORMATS}")
_FILE = Parameter(name=["--output", "-o"], group=OUTPUT, help="File to write (default: stdout).")


@command
def export(
    name: ScheduleName | None = None,
    /,
    *,
    to: Annotated[FormatName | None, _TO] = None,
    output: Annotated[Path | None, _FILE] = None,
    options: ExportOptions,
    settings: LineSettings,
) -> int:
    """Write a schedule in another tool's format.

    Settings of a trainer refer to a CSV file with the order of ops, which is written too. Without `--to`, lists the formats;
    the exit code is then 2 if a schedule or an output file is given.

    Parameters
    ----------
    name
        Name of a schedule, or a CSV or JSON file with one. Default: 1f1b.
    """
    if to is None:
        return _listed(asking=name is None and output is None)
    query = request(() if name is None else (name,), settings, writes=() if output is None else (output,))
    text = exported_to(to, query.name, query.settings, options)
    read = [path for path in (file_of(query.name), *settings.files) if path is not None]
    if output is None:
        sys.stdout.write(text.text)
        _write_named(text, read)
    else:
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
    """List the formats. Return 2 if a schedule or a file was given, which needs one of them."""
    from pipeplan.api.parts import facts, show  # brings rich, which an export does without

    show(facts((format.name, f"{format.help} ({format.ending})") for format in export_formats().values()))
    if asking:
        return 0
    tell("pipeplan: --to is missing: choose one of these formats")
    return 2


def _write_named(text: Export, read: Sequence[Path]) -> None:
    """Write the files that settings on stdout name, except inputs, which are never overwritten."""
    for name, content in text.files.items():
        path = Path(name)
        if any(path.exists() and path.samefile(other) for other in read if other.exists()):
            tell(
                f"{path}, which these settings refer to, is an input and is not overwritten: choose another file with --csv"
            )
        else:
            write_text(path, content)
            tell(f"wrote {path}, which these settings refer to; --csv sets its path")
