"""What the shell completes: the names of schedules and of formats. Any other text is taken as well, for files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from pipeplan.api import export_formats, schedules

if TYPE_CHECKING:
    ScheduleName = str
    FormatName = str
else:
    _QUIET = Parameter(show_choices=False)
    ScheduleName: Any = Annotated[Literal[tuple(found.name for found in schedules())] | str, _QUIET]
    FormatName: Any = Annotated[Literal[tuple(export_formats())] | str, _QUIET]
