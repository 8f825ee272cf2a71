"""Is what a search answers true? Judged by the independent model, by every published order, and by replaying the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pipeplan
from pipeplan.foundation.errors import InfeasibleError, PipeplanError
from pipeplan.model import Kind
from pipeplan.simulation import lower_bound, span_bound
from pipeplan.strategies import Strategy
from tests.extensions.search.case import Case, WholeCase
from tests.extensions.search.independent_model import Answer, solve
from tests.extensions.search.replay import BrokenRuleError, replay, rows_of

WITHIN = 1e-9
"""Floats are compared to this share."""


@dataclass(frozen=True)
class Violation:
    """What a search must not do; ``kind`` is one of a few words, by which violations are counted."""

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass
class Verdict:
    """What was found out about a case.

    ``value``, ``optimal`` and ``found_by`` are the search's; ``best_published`` is the best published order that fits.
    """

    case: Case
    answer: Answer
    violations: list[Violation] = field(default_factory=list)
    best_published: tuple[float, str] | None = None
    value: float | None = None
    optimal: bool = False
    found_by: str = ""

    @property
    def excess(self) -> float | None:
        """How far the search stayed above the optimum, as a share of it; None where one of them is not known."""
        if self.value is None or self.answer.least is None:
            return None
        excess = self.value / float(self.answer.least) - 1
        return excess if excess > WITHIN else 0.0

    def blame(self, kind: str, message: str) -> None:
        self.violations.append(Violation(kind, message))


def judge(case: Case, *, model_seconds: float = 20.0, **budget: Any) -> Verdict:
    """Run a search within a budget (``seconds`` or ``evaluations``, ``seed``), and say all that is wrong with its answer."""
    verdict = Verdict(case, solve(case, seconds=model_seconds))
    _look_at_published(verdict)
    _look_at_bounds(verdict)
    _look_at_search(verdict, budget or {"seconds": 2.5})
    return verdict


def _reachable(answer: Answer) -> float | None:
    return None if answer.reachable is None else float(answer.reachable)


# Published orders


def published(case: Case) -> Iterator[tuple[str, Any]]:
    """Every published order on the placement of a case, with what it takes: simulated, whether it fits or not.

    None is sliced or recomputes.
    """
    settings = case.settings()
    if case.stages % case.ranks == 0:
        settings["chunks"] = case.stages // case.ranks
    for strategy in pipeplan.schedules():
        for label, chosen in _ways(strategy, settings):
            try:
                result = pipeplan.simulate(strategy.name, **chosen)
            except PipeplanError:
                continue
            schedule = result.schedule
            if schedule.placement.rank_of == (case.rank_of,) and schedule.slices == 1 and not schedule.has(Kind.R):
                yield label, result


def _ways(strategy: Strategy, settings: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every way to ask for a strategy: variants, group sizes, no slices; those that look at costs without the limit too."""
    if strategy.looks_at_costs:
        yield strategy.name, settings
        unlimited = {name: value for name, value in settings.items() if name != "memory_limit"}
        yield f"{strategy.name} without a limit", unlimited
        return
    groups = [None, *range(1, settings["microbatches"] + 1)] if strategy.grouped else [None]
    for variant in strategy.variants or (None,):
        for group_size in groups:
            for slices in (None, 1) if strategy.slices > 1 else (None,):
                asked = {"variant": variant, "group_size": group_size, "slices": slices}
                more = {name: value for name, value in asked.items() if value is not None}
                words = [strategy.name, *(f"{name}={value}" for name, value in more.items())]
                yield " ".join(words), {**settings, **more}


def _look_at_published(verdict: Verdict) -> None:
    """The best published order that fits; each is replayed, and none may beat the model."""
    case, shop = verdict.case, verdict.answer.shop
    for name, result in published(case):
        rows = rows_of(result.schedule)
        if not case.split and any(job.kind == "W" for row in rows for turn in row for job in turn):
            continue
        value = _value(case, result)
        fits = _peaks_fit(case, result)
        try:
            replayed = float(replay(shop, rows).value(case.objective) * shop.unit)
        except BrokenRuleError as error:
            if fits:
                verdict.blame("simulator", f"{name} fits, and its replay says: {error}")
            continue
        if not fits or abs(replayed - value) > WITHIN * value:
            verdict.blame("simulator", f"{name} takes {value:g} (fits: {fits}), its replay {replayed:g}")
        elif verdict.best_published is None or value < verdict.best_published[0]:
            verdict.best_published = value, name
    best = verdict.best_published
    if best and (verdict.answer.status == "infeasible" or best[0] < float(verdict.answer.lowest) * (1 - WITHIN)):
        verdict.blame("model", f"{best[1]} takes {best[0]:g}, and the model says {verdict.answer}")


def _value(case: Case, result: Any) -> float:
    return float(result.timeline.makespan if case.objective == "makespan" else result.timeline.spans.max())


def _peaks_fit(case: Case, result: Any) -> bool:
    if case.limits is None:
        return True
    peaks = result.memory.peak_activation if case.in_activations else result.memory.peak_bytes
    return all(peak <= float(limit) * (1 + WITHIN) for peak, limit in zip(peaks, case.limits, strict=True))


# Bounds


def _look_at_bounds(verdict: Verdict) -> None:
    """No lower bound that pipeplan gives for any schedule of the case is above the true optimum."""
    reachable = _reachable(verdict.answer)
    if reachable is None:
        return
    case = verdict.case
    settings = pipeplan.Settings(**case.settings())
    placement = pipeplan.Placement("custom", (case.rank_of,))
    costs = settings.costs(placement)
    limits = settings.limits(placement)
    # A makespan is no less than a span, so the bound on spans is one on makespans too.
    for name, bound in {"span_bound": span_bound, "lower_bound": lower_bound}.items():
        if name == "lower_bound" and case.objective == "span":
            continue
        for given in (None, limits) if limits is not None else (None,):
            found = bound(placement, case.microbatches, costs, limits=given)
            if found.value > reachable * (1 + WITHIN):
                within = "without limits" if given is None else "within the limits"
                verdict.blame(
                    "bound", f"{name} {within} is {found.value:g} ({found.reason}); {reachable:g} is reachable"
                )


# The search


def _look_at_search(verdict: Verdict, budget: dict[str, Any]) -> None:
    case, answer = verdict.case, verdict.answer
    reachable = _reachable(answer)
    try:
        result = pipeplan.search(**case.options(**budget), **case.settings())
    except InfeasibleError as error:
        if reachable is not None:
            verdict.blame("infeasible", f"{reachable:g} is reachable, and the search says: {error}")
        elif verdict.best_published is not None:
            verdict.blame("infeasible", f"{verdict.best_published[1]} fits, and the search says: {error}")
        return
    except Exception as error:
        verdict.blame("crash", f"{type(error).__name__}: {str(error).splitlines()[0]}")
        return
    figures = result.to_dict()
    objective = figures["objective"]
    verdict.value, verdict.optimal, verdict.found_by = objective["value"], figures["optimal"], figures["found_by"]
    _look_at_schedule(verdict, result)
    if answer.status == "infeasible":
        verdict.blame("model", f"the search found {verdict.value:g}, and the model says that nothing fits")
    elif verdict.value < float(answer.lowest) * (1 - WITHIN):
        verdict.blame("below the optimum", f"{verdict.value:g} is below the optimum, {float(answer.lowest):g}")
    if reachable is not None:
        if (bound := objective["lower_bound"]) > reachable * (1 + WITHIN):
            verdict.blame("search's bound", f"{bound:g} ({objective['bound_reason']}); {reachable:g} is reachable")
        if verdict.optimal and verdict.value > reachable * (1 + WITHIN):
            verdict.blame("false optimal", f"{verdict.value:g} is said to be optimal, and {reachable:g} is reachable")
    best = verdict.best_published
    if best is not None and verdict.value > best[0] * (1 + WITHIN):
        verdict.blame(
            "worse than published", f"{verdict.value:g} by {verdict.found_by}; {best[1]} takes {best[0]:g} and fits"
        )


def _look_at_schedule(verdict: Verdict, result: Any) -> None:
    """The schedule found is valid, within the limits, and takes what the search says."""
    case, shop = verdict.case, verdict.answer.shop
    report = pipeplan.check(result.schedule, **case.settings())
    if not report.valid:
        verdict.blame("invalid", f"the schedule found has {len(report.problems)} problems: {report.problems[0]}")
    if not _peaks_fit(case, result):
        verdict.blame("invalid", "the schedule found is over the limit")
    _look_at_replay(verdict, shop, result)


def _look_at_replay(verdict: Verdict, shop: WholeCase, result: Any) -> None:
    try:
        replayed = float(Fraction(replay(shop, rows_of(result.schedule)).value(verdict.case.objective)) * shop.unit)
    except BrokenRuleError as error:
        verdict.blame("invalid", f"the schedule found breaks a rule: {error}")
        return
    if verdict.value is not None and abs(replayed - verdict.value) > WITHIN * replayed:
        verdict.blame("simulator", f"the search says {verdict.value:g}, the replay {replayed:g}")
