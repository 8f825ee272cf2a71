"""Schedule names that the shell completes; any other text is accepted as the path of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from pipeplan.strategies import STRATEGIES

if TYPE_CHECKING:
    ScheduleName = str
else:
    ScheduleName: Any = Annotated[Literal[tuple(STRATEGIES)] | str, Parameter(show_choices=False)]
