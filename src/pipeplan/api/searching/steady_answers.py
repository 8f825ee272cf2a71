"""What each further microbatch costs: the answer of ``steady_state``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from pipeplan.api.presentable import Presentable
from pipeplan.drawing import View
from pipeplan.readable import Times

if TYPE_CHECKING:
    from rich.console import RenderableType

    # Tables know this class, and must not load the solver.
    from pipeplan.solver import SteadyState


@final
@dataclass(frozen=True, eq=False)
class SteadyStates(Presentable):
    """What each further microbatch costs, and the pattern that costs no more.

    ``to_frame()`` has a row for each number of microbatches that pass in a period.

    Attributes
    ----------
    found
        The best pattern, with its rows; the bounds; and what is known of each number of microbatches a period.
    unit
        Of the times, for people.
    """

    found: SteadyState
    unit: str

    def views(self) -> Sequence[View]:
        """None: its picture is its rows."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """``per_microbatch``, its ``bound`` and ``gap``, the ``pattern`` and what is known of the ``periods``."""
        return {"unit": self.unit, **self.found.to_dict()}

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.steady_states import steady_parts  # late: tables load rich

        return steady_parts(self)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        rows: list[dict[str, Any]] = self.to_dict()["periods"]
        return rows

    def __repr__(self) -> str:
        best, bound = self.found.best, self.found.bound
        if best is None:
            return "<SteadyStates: none found>"
        times = Times.of((best.per_microbatch, bound), self.unit)
        return f"<SteadyStates: {times.text(best.per_microbatch)} a microbatch, at least {times.text(bound)}>"
