"""What the shell completes: the names of schedules. Any other text is taken as well, for files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from pipeplan.strategies import STRATEGIES

if TYPE_CHECKING:
    ScheduleName = str
else:
    ScheduleName: Any = Annotated[Literal[tuple(STRATEGIES)] | str, Parameter(show_choices=False)]
