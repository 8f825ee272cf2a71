"""Next run to make: the configuration of a plan with the highest expected improvement over the best run so far."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from statistics import NormalDist
from typing import Any

from pipeplan.extensions.planning.calibration import CalibrationFactor
from pipeplan.extensions.planning.choice.describing import configuration_document, in_words, part_for
from pipeplan.extensions.planning.plan_records import PlanResult
from pipeplan.extensions.planning.results import Estimate
from pipeplan.extensions.planning.runs.factors import TENTH, MachineFit, TriedRun
from pipeplan.foundation.records import Record

NORMAL = NormalDist()

WORTH = 0.005
"""Least expected gain of a run that is proposed, as a fraction of the best step."""


class NextRun(Record, frozen=True, kw_only=True):
    """Proposed next run: its configuration in words and as the keys of its file, its expected gain, and its risks.

    Attributes
    ----------
    step_time_s, interval_s
        Median of the step time with the factors of the runs, and the interval that contains it with 80 %.
    best_run, best_step_time_s, gain, slower
        Fastest run of the same model, cluster and batch so far, the fraction by which the step is expected to be shorter,
        and the probability that it is longer; null if there is no such run.
    too_large
        Probability that its peak exceeds the memory limit of the plan.
    """

    words: str
    document: dict[str, Any]
    step_time_s: float
    interval_s: tuple[float, float]
    best_run: str | None
    best_step_time_s: float | None
    gain: float | None
    slower: float | None
    too_large: float

    @property
    def sentence(self) -> str:
        """The proposal in a sentence."""
        low, high = self.interval_s
        step = f"{self.words}: {self.step_time_s:.4g} s (80% interval {low:.4g}-{high:.4g} s)"
        memory = f"exceeds the memory limit with a probability of {self.too_large:.0%}"
        if self.gain is None:
            return f"next run: {step}; {memory}; no run of this model, cluster and batch was tried"
        best = f"the best run, {self.best_run} ({self.best_step_time_s:.4g} s)"
        if self.gain < WORTH:
            return f"no next run: nothing is expected to be {WORTH:.1%} faster than {best}; the nearest: {step}"
        slower = f"slower with a probability of {self.slower:.0%}"
        return f"next run: {step}, {self.gain:.1%} faster than {best}; {slower}, {memory}"


class FromRuns(Record, frozen=True, kw_only=True):
    """Factors of a ledger of runs by kind of work, and the next run; null if every configuration was tried.

    ``off_before`` and ``off_after`` are the mean distances of the runs' steps from their predictions, as fractions, without
    and with the factors. ``undetermined`` kinds have the factor of all work.
    """

    factors: dict[str, CalibrationFactor]
    undetermined: tuple[str, ...]
    off_before: float
    off_after: float
    next_run: NextRun | None

    @classmethod
    def of(cls, plan: PlanResult, runs: Sequence[TriedRun], fit: MachineFit) -> FromRuns:
        """Return what a fit says of a plan that was made with its factors."""
        return cls(
            factors={kind: factor for kind, factor in fit.calibration.record.factors.items() if kind in fit.kinds},
            undetermined=fit.undetermined,
            off_before=fit.before,
            off_after=fit.after,
            next_run=next_run(plan, runs, fit),
        )

    @property
    def sentences(self) -> tuple[str, str]:
        """The factors with how well they explain the runs, and the next run."""
        own = [
            f"{kind} {found.factor:.2f} +- {found.factor * found.uncertainty:.2f}"
            for kind, found in self.factors.items()
            if kind not in self.undetermined
        ]
        if rest := self.undetermined:
            own.append(f"{self.factors[rest[0]].factor:.2f} for {', '.join(rest)}, which the runs do not tell apart")
        none = "no next run: every configuration of this plan was tried"
        return (
            f"factors from the runs: {', '.join(own)}; predictions of the runs were off by {self.off_before:.1%}, "
            f"with the factors by {self.off_after:.1%}",
            none if self.next_run is None else self.next_run.sentence,
        )


def next_run(plan: PlanResult, runs: Sequence[TriedRun], fit: MachineFit) -> NextRun | None:
    """Return the next run among the configurations of a plan, which was made with the factors of the fit.

    It has the highest expected improvement of those that are expected to be faster than the best run so far (Jones, Schonlau
    and Welch 1998, equation 15, for a log-normal step), times the probability that it fits. None if all were tried.
    """
    tried = {in_words(run.configuration) for run in runs}
    planned = filter(None, (plan.best, plan.pipelined, *plan.runners_up, *plan.front))
    candidates = [found for found in planned if in_words(found.configuration) not in tried]
    if not candidates:
        return None
    batch = candidates[0].configuration.global_batch, candidates[0].configuration.sequence
    steps = [
        (run.seconds, run.id)
        for run in runs
        if run.seconds is not None
        and (run.model, run.cluster.gpus) == (plan.model, plan.cluster.gpus)
        and (run.configuration.global_batch, run.configuration.sequence) == batch
    ]
    best, name = min(steps, default=(None, None))
    spreads = {id(found): fit.spread(_run(plan, found)) for found in candidates}
    fits = {
        id(found): NORMAL.cdf(-(log(found.peak_memory_gib / plan.memory_limit_gib) + fit.memory[0]) / fit.memory[1])
        for found in candidates
    }

    def promise(found: Estimate) -> tuple[bool, float]:
        if best is None:
            return False, 0.0  # the plan's order decides
        spread = spreads[id(found)]
        ahead, mean = log(best / found.step_time) / spread, found.step_time * exp(spread**2 / 2)
        improvement = fits[id(found)] * (best * NORMAL.cdf(ahead) - mean * NORMAL.cdf(ahead - spread))
        return found.step_time < best, improvement if found.step_time < best else -found.step_time

    chosen = max(candidates, key=promise)
    step, spread = chosen.step_time, spreads[id(chosen)]
    return NextRun(
        words=in_words(chosen.configuration),
        document=configuration_document(plan.model, part_for(chosen, plan.cluster), chosen.configuration),
        step_time_s=step,
        interval_s=(step * exp(-TENTH * spread), step * exp(TENTH * spread)),
        best_run=name,
        best_step_time_s=best,
        gain=None if best is None else 1.0 - step / best,
        slower=None if best is None else NORMAL.cdf(log(step / best) / spread),
        too_large=1.0 - fits[id(chosen)],
    )


def _run(plan: PlanResult, found: Estimate) -> TriedRun:
    cluster = part_for(found, plan.cluster)
    return TriedRun(id="", model=plan.model, cluster=cluster, configuration=found.configuration, seconds=None)
