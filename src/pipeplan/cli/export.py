"""``pipeplan export``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from pipeplan.api import Export, ExportOptions, export_formats, exported_to, file_of
from pipeplan.cli.answers import tell
from pipeplan.cli.options import OUTPUT, LineSettings, ScheduleName, command
from pipeplan.cli.request import request
from pipeplan.files import require_apart, write_text

if TYPE_CHECKING:
    FormatName = str
else:
    FormatName: Any = Annotated[Literal[tuple(export_formats())] | str, Parameter(show_choices=False)]

_FORMATS = "\n".join(f"- {each.name}: {each.help}" for each in export_formats().values())
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
    asked = request(() if name is None else (name,), settings, writes=() if output is None else (output,))
    text = exported_to(to, asked.name, asked.settings, options)
    read = [path for path in (file_of(asked.name), *settings.files) if path is not None]
    if output is None:
        sys.stdout.write(text.text)
        _write_named(text, read)
    else:
        named = [Path(path) for path in text.written_to(output).files]
        require_apart([output, *named], read)
        text.save(output)
        tell(f"wrote {output}")
        for path in named:
            tell(f"wrote {path}, which {output} names: give it another place with --csv")
    for warning in text.warnings:
        tell(f"warning: {warning}")
    return 0


def _listed(*, asking: bool) -> int:
    """The formats as the answer; who wanted one of them written did not say which."""
    from pipeplan.api.parts import facts, show  # brings rich, which an export does without

    show(facts((each.name, f"{each.help} ({each.ending})") for each in export_formats().values()))
    if asking:
        return 0
    tell("pipeplan: --to is missing: name one of these formats")
    return 2


def _write_named(text: Export, read: Sequence[Path]) -> None:
    """Write the files that settings on stdout name, unless they are there or are an input, which is never overwritten."""
    for name, content in text.files.items():
        path = Path(name)
        if any(path.exists() and path.samefile(other) for other in read if other.exists()):
            tell(f"{path}, which these settings name, is an input and stays as it is: name another file with --csv")
        else:
            write_text(path, content)
            tell(f"wrote {path}, which these settings name: give it another place with --csv")
