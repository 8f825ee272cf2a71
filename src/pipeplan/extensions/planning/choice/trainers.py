"""Plans of several trainers: each trainer's own best configuration, and the best of these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from math import inf
from pathlib import Path

from pipeplan.extensions.planning.choice.assumptions import assumptions
from pipeplan.extensions.planning.choice.describing import in_words, part_for
from pipeplan.extensions.planning.choice.legality import UNUSUAL
from pipeplan.extensions.planning.choice.nothing_fits import refusal, thriftiest
from pipeplan.extensions.planning.choice.planning import Planning
from pipeplan.extensions.planning.choice.request import (
    PlanListener,
    PlanProgress,
    PlanRequest,
    Value,
    parts,
    software_of_plans,
)
from pipeplan.extensions.planning.choice.sentences import plan_result
from pipeplan.extensions.planning.fitting import widest_limit
from pipeplan.extensions.planning.plan_records import Assumption, Objective, PlanResult, TrainerPlanRecord
from pipeplan.extensions.planning.results import Estimate
from pipeplan.extensions.planning.trainers import refusal_of
from pipeplan.foundation.errors import InfeasibleError, PipeplanError, ShapeError
from pipeplan.foundation.records import holding


def requests_of(request: PlanRequest) -> dict[str, PlanRequest]:
    """Return the request of each trainer in question, with its own software and schedules.

    They are the fixed trainers, or all with schedules of their own. If the software is fixed, they are those of its family,
    the most similar one first. A trainer that runs any schedule is in question only with :func:`without_trainer`.
    """
    trainers, software = request.trainers, request.fixed.get("software", ())
    named = [name for name in request.fixed.get("trainer", ()) if trainers[name].schedules is not None]
    names = named or [name for name, trainer in trainers.items() if trainer.schedules is not None]
    if software and not named:
        names = _of_family(request, names, software)
    return {
        name: replace(
            request,
            fixed={
                **request.fixed,
                "trainer": (name,),
                "software": software or (software_of_plans(trainers[name], request.cluster.gpu),),
            },
        )
        for name in names
    }


def _of_family(request: PlanRequest, names: list[str], software: tuple[str, ...]) -> list[str]:
    """Return the trainers that may have a software: torchtitan has none of Megatron's rows, and vice versa."""
    own = {name: request.trainers[name].software for name in names}
    family = [name for name in names if any(_is_torchtitan(row) == _is_torchtitan(own[name]) for row in software)]
    return sorted(family, key=lambda name: -max(_words_alike(own[name], row) for row in software))


def _words_alike(name: str, other: str) -> int:
    """Return how many words two names of software begin with alike."""
    pairs = zip(name.split("-"), other.split("-"), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_torchtitan(software: str) -> bool:
    return software.startswith("torchtitan")


def without_trainer(request: PlanRequest) -> PlanRequest:
    """Return the request for any trainer: its schedules are those of any trainer, or all if the user allows it."""
    return replace(request, fixed={name: values for name, values in request.fixed.items() if name != "trainer"})


def widened(request: PlanRequest, *, strict: bool) -> Iterator[PlanRequest]:
    """Yield a request, and then wider ones to try in turn if nothing fits.

    First memory is used up to the end of its error bar, unless the user gave the limit (``strict``); then each unusual
    choice is allowed alone, and at last all together.
    """
    limits = [request.memory_limit] if strict else [request.memory_limit, widest_limit(request.cluster)]
    more = [
        frozenset[str](),
        *(frozenset({name}) for name in UNUSUAL if name not in request.allowed),
        frozenset(UNUSUAL),
    ]
    for names in more:
        yield from (replace(request, memory_limit=limit, allowed=request.allowed | names) for limit in limits)


@dataclass(slots=True, eq=False)
class TrainerRun:
    """Run for one trainer, or with ``any_trainer`` for schedules of any.

    ``planning`` is its last planning run (None before it began, or if no configuration is valid, which ``error`` explains),
    ``width`` how often the request was widened.
    """

    trainer: str
    request: PlanRequest
    any_trainer: bool = False
    planning: Planning | None = None
    width: int = 0
    error: PipeplanError | None = None

    @property
    def key(self) -> tuple[float, float]:
        """Rank of a trainer's plan, least first: how far its request was widened, then the objective."""
        value = inf if self.planning is None else self.planning.value
        return (inf if value == inf else self.width), value

    @property
    def own_plan(self) -> TrainerPlanRecord:
        """The plan of the trainer."""
        best = None if self.planning is None else self.planning.best
        refused = str(self.error or "") if self.planning is None else self.planning.refused
        plan = TrainerPlanRecord(
            trainer=self.trainer,
            configuration="" if best is None else in_words(best.configuration),
            software="" if best is None else best.configuration.software,
            step_time_s=None if best is None else best.step_time,
            peak_memory_gib=None if best is None else best.peak_memory_gib,
            fit=None if self.planning is None else self.planning.fit,
            reason="" if best is not None else refused or "no configuration fits",
        )
        return holding(plan, estimate=best)

    @property
    def fits(self) -> bool:
        """True if a configuration fits."""
        return self.planning is not None and self.planning.best is not None


@dataclass(slots=True, eq=False, kw_only=True)
class TrainerRuns:
    """Runs of all trainers in question, in one sweep.

    They share the budget: each may do the work of the budget, which takes a part of its time. Any trainer joins if none of
    them has a configuration that fits, or if the user allows schedules that no trainer runs.
    """

    request: PlanRequest
    value: Value
    seconds: float
    progress: PlanListener | None
    objective: Objective
    tokens: float
    deadline: float | None
    limit: float
    workers: int
    store: Path | None
    runs: list[TrainerRun] = field(default_factory=list)
    known: dict[str, Estimate | None] = field(default_factory=dict)

    def run(self, *, strict: bool) -> None:
        """Run all phases but the order search, one trainer after the other; Ctrl-C ends them early.

        ``strict`` keeps the memory limit.
        """
        own = requests_of(self.request)
        joins = "any-schedule" in self.request.allowed and not self._is_named
        shares = len(own) + (joins or not own)
        try:
            for name, request in reversed(own.items()):
                self._run(TrainerRun(name, request), shares, strict)
            self.runs.reverse()
            if not own or joins or not (self._is_named or self._best.fits):
                names = [name for name, trainer in self.request.trainers.items() if trainer.schedules is None]
                run = TrainerRun(names[0] if names else "", without_trainer(self.request), any_trainer=True)
                self._run(run, shares, strict)
        except KeyboardInterrupt:
            if not self._best.fits:
                raise
            for run in self.runs:
                if run.planning is not None:
                    run.planning.stopped = True
        best = self._best.planning
        if best is not None:
            best.vary(workers=self.workers, store=self.store)

    @property
    def _best(self) -> TrainerRun:
        return min(self.runs, key=lambda run: run.key)

    @property
    def _is_named(self) -> bool:
        """True if the user fixed trainers with schedules of their own."""
        trainers = self.request.trainers
        return any(trainers[name].schedules is not None for name in self.request.fixed.get("trainer", ()))

    def _run(self, run: TrainerRun, shares: int, strict: bool) -> None:
        """Run the request of a trainer, and wider ones if nothing fits. Raises KeyboardInterrupt after an interruption."""
        self.runs.append(run)
        place = len(self.runs) - 1
        reason = "" if run.any_trainer else refusal_of(self.request.trainers[run.trainer], self.request.model)
        if reason:
            run.error = ShapeError(reason, field="trainer")
            return
        everything, cluster = replace(run.request, allowed=frozenset(UNUSUAL)), self.request.cluster
        if all(refusal(replace(everything, cluster=part)) is not None for part in parts(cluster, self.objective)):
            run.error = refusal(everything)
            return
        usual, *between, widest = widened(run.request, strict=strict)
        # What is wider than the request is searched only if something fits, or to name the closest miss.
        skipped = between if shares == 1 or run.any_trainer else (*between, widest)
        for run.width, wider in enumerate((usual, *between, widest)):
            if wider in skipped and thriftiest(wider, must_fit=True) is None:
                continue
            planning = run.planning = Planning(
                [replace(wider, cluster=part) for part in parts(cluster, self.objective)],
                self.value,
                self.seconds,
                None if self.progress is None else partial(self._tell, place, max(shares, place + 1)),
                tokens=self.tokens,
                deadline=self.deadline,
                comfort=self.limit,
                known=self.known,
            )
            planning.run(workers=self.workers, store=self.store)
            planning.fall_back()
            if planning.stopped:
                raise KeyboardInterrupt
            if planning.best is not None or (planning.refused and not planning.estimated):
                return

    def _tell(self, place: int, shares: int, progress: PlanProgress) -> None:
        assert self.progress is not None
        best, plannings = self._best.planning, (run.planning for run in self.runs)
        self.progress(
            PlanProgress(
                phase=progress.phase,
                share=(place + progress.share) / shares,
                estimated=sum(planning.counts().estimated for planning in plannings if planning is not None),
                best=progress.best if best is None else best.best,
            )
        )

    def result(self, order_seconds: float) -> PlanResult:
        """Return the plan of the best trainer, with every trainer's own; the closest miss if nothing fits.

        Raises ShapeError if no configuration is valid, InfeasibleError if none can be estimated or meets the deadline.
        """
        run = self._best if self._best.fits else self.runs[-1]
        planning, error = run.planning, run.error
        if planning is None:
            assert error is not None
            raise error
        for other in self.runs:
            if other.any_trainer and other.planning is not None:
                other.planning.search_orders(order_seconds, self.workers)
        if planning.best is None and not planning.estimated and planning.refused:
            raise InfeasibleError(f"no valid configuration can be estimated: {planning.refused}", field="fix")
        if planning.best is not None and self.deadline is not None and planning.best.step_time > self.deadline:
            raise InfeasibleError(
                f"no configuration meets the deadline of {self.deadline:g} s per step: the fastest step on all "
                f"{self.request.gpus:,} GPUs takes {planning.best.step_time:.3g} s",
                field="deadline",
            )
        others = [other.planning for other in self.runs if other.planning is not None and other.width == run.width]
        best = planning.best
        resting: tuple[Assumption, ...] = ()
        if best is not None:
            part = part_for(best, self.request.cluster)
            resting = assumptions(self.request.model, part, best, calibration=self.request.calibration)
        shown = [other for other in self.runs if other is run or not other.any_trainer] if planning.best else []
        return plan_result(
            self.request.model,
            self.request.cluster,
            objective=self.objective,
            trainer=run.trainer if run.fits else "",
            by_trainer=tuple(other.own_plan for other in shown if other.trainer),
            assumptions=resting,
            searched=next((other.searched for other in others if other.searched is not None), None),
            **planning.result([other for other in others if other.best is not None]),
        )
