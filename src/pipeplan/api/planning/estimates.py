"""Step time and memory of given configurations, without a search, beside what was measured where a file says it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, final

from pipeplan.api.planning.configurations import configuration_record
from pipeplan.api.presentable import Presentable
from pipeplan.drawing import View
from pipeplan.files import GIBIBYTE
from pipeplan.model import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.planner import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedRow:
    """One configuration, and what is predicted of it.

    Attributes
    ----------
    id
        Its name in the file.
    source
        Where a run was published; empty for configurations of one's own.
    estimate
        None where it is refused.
    refused
        Why, in a sentence; None where it is not.
    assumed
        What its file left open and what was taken in its place, a sentence each.
    measured
        What a real run took, where the file says it: ``step_time_s``, ``peak_memory_gib``.
    """

    id: str
    source: str = ""
    estimate: Estimate | None = None
    refused: str | None = None
    assumed: tuple[str, ...] = ()
    measured: Mapping[str, float] = field(default_factory=dict)

    @property
    def time_error(self) -> float | None:
        """Predicted over measured step time, less 1; None without both."""
        return _error(None if self.estimate is None else self.estimate.step_time, self.measured.get("step_time_s"))

    @property
    def memory_error(self) -> float | None:
        """Predicted over measured peak memory, less 1; None without both."""
        predicted = None if self.estimate is None else self.estimate.peak_bytes / GIBIBYTE
        return _error(predicted, self.measured.get("peak_memory_gib"))

    def to_dict(self) -> dict[str, Any]:
        """Its part of ``estimate --json``."""
        found = self.estimate
        record = _REFUSED if found is None else estimate_record(found)
        assumed = [*self.assumed, *(() if found is None else found.assumed)]
        said: dict[str, Any] = {"assumed": list(dict.fromkeys(assumed)), "refused": self.refused}
        if self.measured:
            errors = {"step_time": self.time_error, "peak_memory": self.memory_error}
            said |= {"measured": dict(self.measured), "error": errors}
        return {"id": self.id, **record, **said}


def _error(predicted: float | None, measured: float | None) -> float | None:
    return None if predicted is None or measured is None else predicted / measured - 1


_REFUSED: dict[str, Any] = dict.fromkeys(
    ("step_time_s", "peak_memory_gib", "peak_memory_by_rank_gib", "breakdown", "error_bar")
)
"""The figures of a row that is refused."""


@final
@dataclass(frozen=True, eq=False)
class Estimates(Presentable):
    """Predictions of given configurations.

    Iteration gives the rows; ``to_frame()`` has a row each.

    Attributes
    ----------
    rows
        In the order of the file.
    """

    rows: tuple[EstimatedRow, ...]

    def __iter__(self) -> Iterator[EstimatedRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, id: str) -> EstimatedRow:
        """The row of this id. Raises KeyError for another one."""
        return next((row for row in self.rows if row.id == id), None) or _missing(id)

    def views(self) -> Sequence[View]:
        """None: there is nothing to draw."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """``rows``: step time, memory, where both go, the error bar, what was assumed, and why others are refused."""
        return {"rows": [row.to_dict() for row in self.rows]}

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.estimates import estimates_parts  # late: tables load rich

        return estimates_parts(self)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [row.to_dict() for row in self.rows]

    def __repr__(self) -> str:
        refused = sum(row.refused is not None for row in self.rows)
        return f"<Estimates of {counted(len(self.rows) - refused, 'configuration')}, {refused} refused>"


def _missing(id: str) -> EstimatedRow:
    raise KeyError(id)


def estimate_record(found: Estimate) -> dict[str, Any]:
    """An estimate as plain numbers; ``docs/how-to/planning.md`` says what each is.

    Times are seconds, memory is GiB; ``breakdown`` adds up to the step, and each rank's memory to its peak.
    """
    by_rank = [rank.total / GIBIBYTE for rank in found.memory]
    bar = found.error_bar
    return {
        "step_time_s": found.step_time,
        "peak_memory_gib": max(by_rank),
        "peak_memory_by_rank_gib": by_rank,
        "breakdown": {f"{name}_s": value for name, value in asdict(found.time).items()},
        "memory_breakdown_by_rank_gib": [
            {name: value / GIBIBYTE for name, value in asdict(rank).items()} for rank in found.memory
        ],
        "tokens_per_s": found.tokens_per_second,
        "flops": found.flops,
        "mfu": found.mfu,
        "error_bar": None
        if bar is None
        else {"low": bar.low, "high": bar.high, "step_time_s": _between(found), "runs": list(bar.runs)},
        "costs_from": dict(found.costs_from),
        "assumed": list(found.assumed),
        "configuration": configuration_record(found.configuration),
    }


def _between(found: Estimate) -> list[float]:
    """The step times between which the error bar puts the measured one."""
    assert found.error_bar is not None
    return [found.step_time * found.error_bar.low, found.step_time * found.error_bar.high]
