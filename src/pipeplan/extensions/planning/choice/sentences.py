"""Plan with its sentences: the heading, why nothing fits, and remarks on the choice."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pipeplan.answers.parts import figure
from pipeplan.extensions.planning.choice.choice import INDISTINGUISHABLE
from pipeplan.extensions.planning.choice.describing import brief, differences, in_words, schedule_in_words
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.plan_records import (
    ClusterRecord,
    GpuRecord,
    MissRecord,
    PlannedModel,
    PlanResult,
    Totals,
)
from pipeplan.extensions.planning.results import Estimate
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.foundation.readable import percent
from pipeplan.foundation.records import holding, replaced
from pipeplan.model import counted

NOTHING_FITS: Mapping[str, Any] = {
    **dict.fromkeys(("best", "fit", "pipelined", "closest_miss", "searched", "optimality_gap", "totals")),
    **dict.fromkeys(("by_trainer", "unusual", "runners_up", "front", "assumptions", "sensitivity", "left_out"), ()),
    **{"given_up": 0.0, "simpler_because": "", "remarks": ()},
}
"""Fields of a plan in which nothing fits."""


def plan_result(
    model: ModelShape,
    cluster: Cluster,
    *,
    objective: str,
    trainer: str,
    memory_limit_gib: float,
    interrupted: bool = False,
    **fields: Any,
) -> PlanResult:
    """Return a plan with its sentences; ``fields`` that are left out are those of a plan in which nothing fits."""
    best, closest = fields.get("best"), fields.get("closest_miss")
    gpu = {field.name: getattr(cluster.gpu, field.name) for field in dataclasses.fields(cluster.gpu)}
    sizes = {name: getattr(cluster, name) for name in ClusterRecord.__struct_fields__ if name != "gpu"}
    plan = PlanResult(
        **dict(NOTHING_FITS)
        | {
            "headline": "",
            "heading": heading_of(model, cluster, best or closest),
            "trainer": trainer,
            "miss": "" if best is not None else miss_in_words(closest, memory_limit_gib),
            "model_record": PlannedModel.of(model),
            "cluster_record": ClusterRecord(**sizes, gpu=GpuRecord(**gpu | {"peak": dict(cluster.gpu.peak)})),
            "objective": objective,
            "memory_limit_gib": memory_limit_gib,
        }
        | fields
    )
    holding(plan, model=model, cluster=cluster, interrupted=interrupted)
    plan = without_close_calls(plan)
    return replaced(plan, headline=headline_of(plan), remarks=() if best is None else remarks_of(plan))


def without_close_calls(plan: PlanResult) -> PlanResult:
    """Return a plan whose runners-up lost by no small difference if its search ended early."""
    if plan.best is None or plan.complete:
        return plan
    step, runners = plan.best.step_time, []
    reason = f"about as fast ({_ended_by(plan)})"
    for runner in plan.runners_up:
        # A faster one lost because it is less simple, which the rest of the search does not change.
        close = 0 <= runner.step_time / step - 1 <= INDISTINGUISHABLE
        fits = runner.peak_memory_gib <= plan.memory_limit_gib
        runners.append(replaced(runner, lost_because=reason) if close and fits else runner)
    return replaced(plan, runners_up=tuple(runners))


_SUPERLATIVES = {
    "step-time": ("fastest", ""),
    "cost": ("cheapest", ""),
    "gpus": ("smallest", " that meets the deadline"),
}
"""Superlative of each objective, and the condition that a configuration has to meet for it."""

_BETTER = {"step-time": "faster", "cost": "cheaper", "gpus": "smaller"}

NOTHING_BETTER = 0.005
"""Gain below which it is not worth a word: of the rest of a search, of the next best configuration."""


def headline_of(plan: PlanResult) -> str:
    """Return the answer in a sentence: what to train with, its step time and memory, how sure, and what it gains."""
    best = plan.best
    if best is None:
        return f"{plan.miss[0].upper()}{plan.miss[1:]}"
    tight = " (tight)" if plan.fit == "tight" else ""
    clauses = [
        f"Train with {what_in_words(best.configuration)}: {step_with_error(best)}, {best.peak_memory_gib:.1f} of "
        f"{plan.memory_limit_gib:.1f} GiB{tight}",
        f"the {_chosen_by(plan, best)}",
        f"unusual: {', '.join(plan.unusual)}" if plan.unusual else "",
    ]
    if _left(plan) >= NOTHING_BETTER:
        clauses.append(f"a longer search may find one up to {_left(plan):.0%} {_BETTER[plan.objective]}")
    return "; ".join(filter(None, clauses))


def _left(plan: PlanResult) -> float:
    """Return the largest gain of what the search did not reach, as a fraction of the plan's value."""
    # A gap of g means that the best of the rest takes at least 1 / (1 + g) of the value.
    return 0.0 if plan.complete or plan.optimality_gap is None else 1 - 1 / (1 + plan.optimality_gap)


def what_in_words(configuration: Configuration) -> str:
    """Return the degrees and the schedule of a configuration: ``tp8 pp2 dp4, 1f1b``, ``dp8, ZeRO-3, no pipeline``."""
    schedule = "" if configuration.gpus == 1 else f", {schedule_in_words(configuration)}"
    return f"{brief(configuration)}{schedule}"


def step_with_error(estimate: Estimate) -> str:
    """Return the step time, and where it most likely lies: ``15.25 s per step (13.34-16.97 s likely)``."""
    bar = estimate.error_bar
    likely = "" if bar is None else f" ({figure(bar.step_time_s[0])}-{figure(bar.step_time_s[1])} s likely)"
    return f"{figure(estimate.step_time)} s per step{likely}"


def _chosen_by(plan: PlanResult, best: Estimate) -> str:
    """Return the rule that chose the best, and its distance from what was not chosen.

    It has the best value, or it is the simplest of those that are about as good.
    """
    superlative, condition = _SUPERLATIVES[plan.objective]
    most = superlative + ("" if plan.complete else " found") + condition
    if plan.simpler_because:
        rule, ahead = f"simplest within {INDISTINGUISHABLE:.0%} of the {most}", _given_up(plan, best)
    else:
        rule, ahead = most if condition or not plan.complete else f"{most} that fits", _ahead_of_next(plan, best)
    # One comparison beside what a longer search may find: three lines of a terminal.
    return rule + (ahead if ahead and _left(plan) >= NOTHING_BETTER else ahead + _ahead_of_other_kind(plan))


def _given_up(plan: PlanResult, best: Estimate) -> str:
    """Return the configuration that is faster but less simple, in brackets; empty if it gains next to nothing."""
    if plan.given_up < NOTHING_BETTER:
        return ""
    here, there = best.configuration, plan.runners_up[0].configuration
    other = brief(there) if brief(there) != brief(here) else f"the same with {differences(there, here)}"
    better = "faster" if here.gpus == there.gpus else _BETTER[plan.objective]
    return f" ({other}: {plan.given_up:.1%} {better}, but {plan.simpler_because.partition(':')[0]})"


def _ahead_of_next(plan: PlanResult, best: Estimate) -> str:
    """Return the lead over the next best configuration that fits; empty for the fewest GPUs, and if it is small."""
    fitting = [runner for runner in plan.runners_up if runner.peak_memory_gib <= plan.memory_limit_gib]
    if plan.objective == "gpus" or not fitting:
        return ""
    following = min(fitting, key=lambda runner: runner.gpu_seconds)
    ahead = following.gpu_seconds / best.gpu_seconds - 1
    if ahead < NOTHING_BETTER:
        return ""
    there = following.configuration
    other = brief(there) if brief(there) != brief(best.configuration) else differences(there, best.configuration)
    return f", {ahead:.1%} ahead of {other}"


def _ahead_of_other_kind(plan: PlanResult) -> str:
    """Return the lead over the best configuration without a pipeline, or with one; empty if there is none."""
    if plan.objective == "gpus" or plan.pipelined is None or plan.pipelined.ahead < NOTHING_BETTER:
        return ""
    kind = "without a pipeline" if plan.pipelined.won else "with a pipeline"
    return f", {plan.pipelined.ahead:.1%} ahead of the best {kind}"


def _ended_by(plan: PlanResult) -> str:
    """Return what ended the search before its end."""
    return "the search was interrupted" if plan.interrupted else "the budget ended"


def heading_of(model: ModelShape, cluster: Cluster, shown: Estimate | None) -> str:
    """Return the heading: model, cluster and global batch."""
    batch = ""
    if shown is not None:
        chosen = shown.configuration
        batch = f", {counted(chosen.global_batch, 'sequence')} of {chosen.sequence:,} tokens"
    nodes = f"{counted(cluster.nodes, 'node')} of {cluster.per_node}"
    return f"{model.name} on {cluster.gpus:,} {cluster.gpu.name} ({nodes}){batch}"


def miss_in_words(closest: MissRecord | None, limit_gib: float) -> str:
    """Return one or two sentences on why nothing fits and on the nearest request that would."""
    if closest is None:
        return "no configuration fits"
    return (
        f"no configuration fits in {limit_gib:.1f} GiB per GPU: the closest ({closest.words}) needs "
        f"{closest.peak_memory_gib:.1f} GiB; {closest.change}"
    )


def remarks_of(plan: PlanResult) -> tuple[str, ...]:
    """Return sentences besides the headline: the whole training, the fit, the pipeline, and what was left undone."""
    remarks = [
        "" if plan.totals is None else training_in_words(plan.totals),
        f"peak memory{fit_in_words(plan)}" if plan.fit == "tight" else "",
        pipelined_in_words(plan),
        f"trainer {trainer_in_words(plan)}" if len(plan.by_trainer) > 1 else "",
        unfinished(plan),
    ]
    return tuple(filter(None, remarks))


def unfinished(plan: PlanResult) -> str:
    """Return what the budget or an interruption left undone, and its largest possible gain; empty if nothing."""
    if plan.complete or plan.optimality_gap is None:
        return ""
    remedy = "" if plan.interrupted else ": --seconds extends it"
    return (
        f"{_ended_by(plan)} before every configuration was estimated or ruled out{remedy}; by the bounds of the rest, the "
        f"plan is within {percent(plan.optimality_gap)} of the best"
    )


def trainer_in_words(plan: PlanResult, *, reasons: bool = True) -> str:
    """Return the trainer, and the step times of the other trainers' own plans; with ``reasons``, why one has none."""
    if len(plan.by_trainer) < 2:
        return plan.trainer
    own = [
        f"{other.trainer} "
        + (f"none{reasons * f' ({other.reason})'}" if other.step_time_s is None else f"{figure(other.step_time_s)} s")
        for other in plan.by_trainer
        if other.trainer != plan.trainer
    ]
    return f"{plan.trainer} (others' own plans: {', '.join(own)})"


def training_in_words(totals: Totals) -> str:
    """Return what the whole training takes: ``1 trillion tokens: 12.3 days, 18,900 GPU hours, $37,800``."""
    units = (("trillion ", 1e12), ("billion ", 1e9), ("million ", 1e6), ("", 1.0))
    unit, size = next(((name, size) for name, size in units if totals.tokens >= size), units[-1])
    dollars = "" if totals.dollars is None else f", ${totals.dollars:,.0f}"
    return (
        f"{totals.tokens / size:,g} {unit}tokens: {totals.days:,.1f} days, {totals.gpu_hours:,.0f} GPU hours{dollars}"
    )


def fit_in_words(plan: PlanResult) -> str:
    """Return whether the peak fits, to stand behind the peak; empty if that is unknown."""
    if plan.fit is None:
        return ""
    return ": tight, within the error bar of the prediction" if plan.fit == "tight" else f": {plan.fit}"


def pipelined_in_words(plan: PlanResult) -> str:
    """Return the best configuration with a pipeline, and why it won or lost; empty if there is none."""
    if plan.pipelined is None:
        return ""
    words = "the plan" if plan.pipelined.won else with_step(plan.pipelined)
    return f"best with a pipeline: {words}; {plan.pipelined.because}"


def with_step(estimate: Estimate) -> str:
    """Return a configuration and its step time in words."""
    return f"{in_words(estimate.configuration)}: {figure(estimate.step_time)} s"
