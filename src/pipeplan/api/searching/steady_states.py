"""Marginal cost of a microbatch under a memory limit. Importing this loads the solver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, final

from pipeplan.api.answers import AnswerRecord
from pipeplan.api.arguments import options_and_settings, takes
from pipeplan.api.keywords import SteadyStateKeywords
from pipeplan.api.parts import columns, facts, line
from pipeplan.api.searching.options import AUTO, SteadyStateOptions
from pipeplan.api.searching.problems import problem_of
from pipeplan.api.searching.search_words import costs_in_words, limit_in_words
from pipeplan.api.searching.unflushed import UnflushedSteps, unflushed_steps
from pipeplan.api.sources import DEFAULT_MICROBATCHES, as_taken_by, shape_of
from pipeplan.costs import ConfiguredSettings, Settings
from pipeplan.errors import InputError
from pipeplan.model import counted
from pipeplan.readable import Times, change, percent
from pipeplan.records import Evidence, Record, holding
from pipeplan.solver import Problem, SteadyState
from pipeplan.solver import steady_state as steady_state_of
from pipeplan.strategies import Strategy, strategy

if TYPE_CHECKING:
    from rich.console import RenderableType


class SteadyPattern(Record, frozen=True, kw_only=True):
    """Schedule that repeats: what each rank runs in one period."""

    microbatches: int
    period: float
    per_microbatch: float
    rows: tuple[tuple[str, ...], ...]


class SteadyPeriod(Record, frozen=True, kw_only=True):
    """Best pattern with a number of microbatches; ``per_microbatch`` is None if none was found."""

    microbatches: int
    per_microbatch: float | None
    bound: float


@final
class SteadyStates(AnswerRecord, frozen=True, kw_only=True, eq=False):
    """Marginal cost of a microbatch in the long run, and the best pattern found; times are in ``unit``.

    For a published schedule, ``steps`` has its steps without a flush, and there are no patterns.

    ``to_frame()`` has a row for each number of microbatches that pass in a period.
    """

    unit: str
    per_microbatch: float | None
    bound: float
    gap: float | None
    pattern: SteadyPattern | None
    periods: tuple[SteadyPeriod, ...]
    steps: UnflushedSteps | None = None

    found = Evidence[SteadyState]()
    """The best pattern as the solver has it, and the problem that it is for."""

    def _table(self) -> Iterable[RenderableType]:
        """Return the best pattern and its bound, the periods tried, and its rows."""
        problem, pattern = self.found.problem, self.pattern
        if self.steps is not None:
            return self._measured(self.steps)
        values = [self.bound, *(period.per_microbatch for period in self.periods if period.per_microbatch is not None)]
        times = Times.of(values, self.unit)
        rows = [
            ("each further microbatch", "no pattern found" if pattern is None else times.text(pattern.per_microbatch)),
            ("at least", f"{times.text(self.bound)}" + ("" if self.gap is None else f", gap {percent(self.gap)}")),
            ("costs", costs_in_words(problem.costs, problem.placement)),
            ("memory limit", limit_in_words(problem.limits)),
        ]
        in_unit = f" ({times.unit})" if times.unit else ""
        table = columns("microbatches a period", f"time for each{in_unit}", f"at least{in_unit}", padding=1)
        for period in self.periods:
            value = "none found" if period.per_microbatch is None else times.number(period.per_microbatch)
            table.add_row(str(period.microbatches), value, times.number(period.bound))
        ops = [f"rank {rank}: {' '.join(row)}" for rank, row in enumerate(() if pattern is None else pattern.rows)]
        return line("the steady state", "bold"), facts(rows, above=1, below=1), table, line(), *map(line, ops)

    def _measured(self, steps: UnflushedSteps) -> Iterable[RenderableType]:
        problem, each = self.found.problem, self.per_microbatch or self.bound
        times = Times.of([each, self.bound, steps.step, steps.with_flush], self.unit)
        rows = [
            ("each further microbatch", times.text(each)),
            ("at least", f"{times.text(self.bound)}, gap {percent(each / self.bound - 1)}"),
            (f"step of {counted(steps.microbatches, 'microbatch')}", times.text(steps.step)),
            ("with a flush", f"{times.text(steps.with_flush)} ({change(steps.with_flush / steps.step - 1)})"),
            ("peak", f"{steps.peak_activations:g} activations, and {steps.weight_versions} versions of the weights"),
            ("costs", costs_in_words(problem.costs, problem.placement)),
            ("memory limit", limit_in_words(problem.limits)),
        ]
        return line(f"the steady state of {steps.schedule}, without a flush", "bold"), facts(rows, above=1)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [period.to_dict() for period in self.periods]

    def __repr__(self) -> str:
        if self.per_microbatch is None:
            return "<SteadyStates: none found>"
        times = Times.of((self.per_microbatch, self.bound), self.unit)
        return f"<SteadyStates: {times.text(self.per_microbatch)} per microbatch, at least {times.text(self.bound)}>"


@takes(SteadyStateOptions, ConfiguredSettings)
def steady_state(**options: Unpack[SteadyStateKeywords]) -> SteadyStates:
    """Return the cost of each further microbatch in the long run: the shortest period that repeats, and bounds.

    A step takes time to fill and to drain the pipeline, and this cost for each microbatch between. If memory is not
    short it is the work of the busiest rank; under a tight limit it can be more.

    With ``schedule``, it is that of a published schedule whose steps follow each other without a flush, because weights
    are updated one step late: of ``1f1b``, this is PipeDream-2BW.

    Parameters
    ----------
    **options
        The options of a steady state (:class:`~pipeplan.api.searching.options.SteadyStateOptions`; of what can be left,
        ``split`` alone is decided here), and shape and costs; ``memory_limit`` is one, or one per rank.

    Raises
    ------
    InputError
        For a placement, cost, limit or budget that cannot be; transfers that occupy ranks or queue; sliced sequences.
    InfeasibleError
        For a limit below the least feasible one, which the message names.

    Examples
    --------
    >>> steady = pipeplan.steady_state(ranks=4, placement="v", memory_limit="2.5act")  # doctest: +SKIP
    >>> steady.found.best.per_microbatch, steady.found.bound  # doctest: +SKIP
    """
    return steady_state_found(*options_and_settings(SteadyStateOptions, options))


def _require_no_search(options: SteadyStateOptions) -> None:
    unused = {"placement": options.placement != AUTO, "leave": options.leave, "full_backward": options.full_backward}
    if name := next((name for name, used in unused.items() if used), None):
        raise InputError(
            f"the steady state of a published schedule has its own order: drop {name.replace('_', ' ')} or schedule",
            field=name,
        )


def _measured(rule: Strategy, settings: Settings) -> SteadyStates:
    """Return the steady state of a published schedule."""
    microbatches = settings.microbatch_count or DEFAULT_MICROBATCHES
    steps, bound = unflushed_steps(rule, settings, microbatches)
    placement = rule.placed(shape_of(rule, as_taken_by(rule, settings)))
    costs, limits = settings.costs(placement), settings.limits(placement)
    problem = Problem(placement, microbatches, costs, limits, communication=settings.communication)
    return holding(
        SteadyStates(
            unit=costs.time_unit,
            per_microbatch=steps.step / microbatches,
            bound=bound,
            gap=steps.step / microbatches / bound - 1,
            pattern=None,
            periods=(),
            steps=steps,
        ),
        found=SteadyState(problem, None, bound, ()),
    )


_NOT_IN_STEADY_STATES = {
    "microbatch_factors": "repeats equal microbatches",
    "lengths": "repeats equal microbatches",
    "unshard_times": "does not count the collectives of a step",
    "reduce_times": "does not count the collectives of a step",
}
"""Settings that a steady state cannot take, with the reason."""


def steady_state_found(options: SteadyStateOptions, settings: Settings) -> SteadyStates:
    """See :func:`steady_state`."""
    for name, reason in _NOT_IN_STEADY_STATES.items():
        if getattr(settings, name) is not None:
            raise InputError(
                f"a steady state {reason}: drop {name.replace('_', ' ')}, or search a whole step", field=name
            )
    if options.schedule is not None:
        _require_no_search(options)
        return _measured(strategy(options.schedule), settings)
    problem = problem_of(settings, options)
    solution = steady_state_of(
        problem,
        seconds=10.0 if options.seconds is None else options.seconds,
        most=options.most,
        seed=options.seed,
        workers=options.workers or 1,
    )
    best, copies = solution.best, problem.placement.copies
    return holding(
        SteadyStates(
            unit=problem.costs.time_unit,
            per_microbatch=None if best is None else best.per_microbatch,
            bound=solution.bound,
            gap=solution.gap,
            pattern=None
            if best is None
            else SteadyPattern(
                microbatches=best.microbatches * copies,
                period=best.period,
                per_microbatch=best.per_microbatch,
                rows=tuple(tuple(map(str, row)) for row in best.rows),
            ),
            periods=tuple(
                SteadyPeriod(
                    microbatches=period.microbatches * copies,
                    per_microbatch=None if period.pattern is None else period.pattern.per_microbatch,
                    bound=period.bound,
                )
                for period in solution.periods
            ),
        ),
        found=solution,
    )
