"""Plans: the configuration to train with, and the reasons for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

import msgspec
from msgspec.structs import asdict

from pipeplan.answers.answers import AnswerRecord
from pipeplan.answers.parts import line
from pipeplan.answers.simulating.result import Result, view_of_result
from pipeplan.extensions.planning import (
    Calibration,
    Counts,
    Estimate,
    Fit,
    PlanResult,
    RunnerUp,
    Sensitivity,
    Totals,
    TrainerPlan,
    part_of,
)
from pipeplan.extensions.planning.answers.configurations import in_words, layout_in_words, recompute_in_words
from pipeplan.extensions.planning.answers.estimates import step_in_words
from pipeplan.extensions.planning.answers.one_configuration import (
    FlagsRecord,
    flags_of_one,
    flags_record,
    schedule_for,
    simulated,
    trainer_of,
)
from pipeplan.extensions.planning.answers.plan_table import (
    choice_parts,
    heading_of,
    miss_of,
    miss_parts,
    pipeline_won,
    pipelined_because,
    plan_view,
    remarks_of,
)
from pipeplan.extensions.planning.flags import configuration_document
from pipeplan.extensions.planning.hardware import Cluster, Link
from pipeplan.extensions.planning.trainers import flags_of, plan_flags, plan_trainers
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.formats import Content, Format, TimelineContent, TrainerSettings, torch_csv_compute, torch_csv_warnings
from pipeplan.foundation.errors import InfeasibleError, UnknownNameError
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.foundation.records import Evidence, Record, holding
from pipeplan.trainers import TRAINERS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.drawing.plan import PlanView

OWN_ENDINGS = (
    ".searched.csv",
    ".yaml",
    ".yml",
    *(f".{trainer}.sh" for trainer in plan_trainers()),
    ".sh",
)
"""Suffixes of files that hold the searched order, the best configuration, or the flags of one trainer (``.sh`` alone: of the
assumed one)."""


class PlannedConfiguration(Estimate, frozen=True, kw_only=True):
    """A configuration in a plan: its predictions, its description, and its representation in files.

    ``document`` is what :func:`pipeplan.estimate` takes.
    """

    words: str
    layout: str
    recompute: str
    document: dict[str, Any]


class BestConfiguration(PlannedConfiguration, frozen=True, kw_only=True):
    """Best configuration, and flags by trainer: each trainer's are those of its own plan, with the prediction for it."""

    flags: dict[str, FlagsRecord]


class TrainerPlanRecord(Record, frozen=True, kw_only=True):
    """Own plan of a trainer among which the best was chosen; ``reason`` says why there is none."""

    trainer: str
    configuration: str
    software: str
    step_time_s: float | None
    peak_memory_gib: float | None
    fit: Fit | None
    reason: str


class RunnerUpRecord(PlannedConfiguration, frozen=True, kw_only=True):
    """Another configuration, and why it is not the best."""

    lost_because: str


class PipelinedRecord(PlannedConfiguration, frozen=True, kw_only=True):
    """Best configuration with a pipeline, and why it won against the best one without, or lost."""

    won: bool
    because: str


class MissRecord(PlannedConfiguration, frozen=True, kw_only=True):
    """Closest configuration if none fits: how far it is over the memory limit, and a remedy."""

    over_by_gib: float
    change: str


class SearchedRecord(PlannedConfiguration, frozen=True, kw_only=True):
    """A finalist with a better order of ops than the published ones."""

    instead_of_s: float
    found_by: str
    optimality_gap: float


class GpuRecord(Record, frozen=True, kw_only=True):
    """A GPU as its data sheet has it; FLOP/s by format, bytes, bytes/s."""

    name: str
    peak: dict[str, float]
    memory_bytes: float
    memory_bandwidth: float
    host_bandwidth: float
    price: float | None
    source: str
    generation: str
    multiprocessors: int
    sustained: float


class ClusterRecord(Record, frozen=True, kw_only=True):
    """GPUs, nodes, and the links inside of a node and between them; ``joined`` GPUs have the fast links."""

    per_node: int
    nodes: int
    gpus: int
    joined: int
    inside: Link
    between: Link
    gpu: GpuRecord


@final
class Plan(AnswerRecord, frozen=True, kw_only=True, eq=False):
    """The configuration to train a model with on a cluster, and why it is that one.

    ``to_frame()`` has a row per configuration: the best, the runners-up, the front. ``save`` writes ``.json`` (everything),
    ``.png .svg .pdf`` (front, time, memory), ``.yaml`` (the best configuration, for ``pipeplan estimate``), ``.html .csv
    .trace.json`` and the like (its schedule), ``.searched.csv`` (a better order, where one was found), ``.megatron.sh
    .bridge.sh .torchtitan.sh .pipeplan.sh`` (flags). In JSON ``best`` is null, and ``closest_miss`` is not, where nothing
    fits.
    """

    heading: str
    trainer: str
    by_trainer: tuple[TrainerPlanRecord, ...]
    miss: str
    model: ModelShape
    cluster_record: ClusterRecord = msgspec.field(name="cluster")
    objective: str
    memory_limit_gib: float
    best: BestConfiguration | None
    given_up: float
    simpler_because: str
    fit: Fit | None
    unusual: tuple[str, ...]
    pipelined: PipelinedRecord | None
    runners_up: tuple[RunnerUpRecord, ...]
    front: tuple[PlannedConfiguration, ...]
    sensitivity: tuple[Sensitivity, ...]
    closest_miss: MissRecord | None
    searched: SearchedRecord | None
    counts: Counts
    seconds: float
    complete: bool
    optimality_gap: float | None
    left_out: tuple[str, ...]
    totals: Totals | None
    remarks: tuple[str, ...]

    cluster = Evidence[Cluster]()
    """Cluster of the plan."""

    planned = Evidence[PlanResult]()
    """The planner's answer: ``best``, ``runners_up``, ``front``, ``sensitivity``, ``closest_miss``, ``counts``."""

    calibration = Evidence[Calibration | None]()
    """Calibration of the GPU; None without one."""

    flags = Evidence[Mapping[str, TrainerSettings]]()
    """Flags of each trainer's own plan, the files that they name, and warnings on what they cannot express."""

    best_result = Evidence[Result | None]()
    """The schedule of the best one on its times; None if nothing fits."""

    @property
    def chosen(self) -> BestConfiguration:
        """The best one. Raises InfeasibleError if nothing fits, with the closest miss."""
        if self.best is None:
            raise InfeasibleError(self.miss)
        return self.best

    @property
    def result(self) -> Result:
        """The schedule of the best one on its times, as :func:`pipeplan.simulate` gives it. Raises InfeasibleError."""
        if self.best_result is None:
            raise InfeasibleError(self.miss)
        return self.best_result

    def for_releases(self, versions: Mapping[str, str]) -> Plan:
        """Return the plan with flags for these releases, by trainer: ``{"torchtitan": "main"}``."""
        return plan_of(self.model, self.cluster, self.planned, self.calibration, versions)

    def flags_for(self, trainer: str) -> TrainerSettings:
        """Return the flags of one trainer. Raises UnknownNameError for another name, InfeasibleError if nothing fits."""
        _ = self.chosen
        known = TRAINERS.find(trainer)
        name = trainer if known is None else known.name
        missing = next((own.reason for own in self.by_trainer if own.trainer == name and own.reason), "")
        if missing:
            raise InfeasibleError(f"no plan for {name}: {missing}")
        if name not in self.flags:
            raise UnknownNameError("trainer", trainer, self.flags, field="flags")
        return self.flags[name]

    def _contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Return the record, its picture, and the schedule of the best configuration with its times."""
        whole = {**super()._contents(), "plan picture": lambda _: self.plan_view()}
        if self.best is None:
            return whole
        return whole | {
            "pictures": lambda chosen: [view_of_result(self.result, reasons=chosen.explains)],
            "timeline": lambda _: TimelineContent(
                timeline=self.result.timeline, costs=self.result.costs, figures=self.result.to_dict()
            ),
            "schedule": lambda _: self.result.schedule,
            "costs": lambda _: self.result.costs,
        }

    def _own_file(self, name: str) -> TrainerSettings | None:
        """Return the best configuration as YAML, or a trainer's flags. Raises InfeasibleError if nothing fits."""
        ending = next((suffix for suffix in OWN_ENDINGS if name.lower().endswith(suffix)), None)
        if ending is None:
            return None
        if ending == ".searched.csv":
            return self._searched_csv()
        if ending in (".yaml", ".yml"):
            return TrainerSettings(text=self.configuration_yaml())
        trainer = ending.split(".")[1]
        flags = self.flags_for(self.trainer if ending == ".sh" else trainer)
        return TrainerSettings(text=flags.text, files=flags.files, warnings=flags.warnings)

    def _searched_csv(self) -> TrainerSettings:
        searched = self.planned.searched
        if searched is None:
            raise InfeasibleError(
                "the search found no order better than the published schedules, so there is nothing to write"
            )
        text, warnings = torch_csv_compute(searched.schedule), torch_csv_warnings(searched.schedule)
        return TrainerSettings(text=text, warnings=warnings)

    def configuration_yaml(self) -> str:
        """Return the best configuration as ``estimate`` takes it. Raises InfeasibleError if nothing fits."""
        import yaml

        machines = self.cluster_of(self.chosen)
        document = configuration_document(self.model, machines, self.chosen.configuration)
        text: str = yaml.safe_dump(document, sort_keys=False)
        return text

    def plan_view(self) -> PlanView:
        """Return the view of its picture: the Pareto front, the first few step times, and memory of the best one's ranks."""
        return plan_view(self.planned, self.shown, self.heading)

    @property
    def shown(self) -> list[Estimate]:
        """The best and the runners-up; the closest miss where nothing fits."""
        if self.best is None:
            return [] if self.planned.closest_miss is None else [self.planned.closest_miss.estimate]
        return [self.best, *(runner.estimate for runner in self.planned.runners_up)]

    @property
    def summary(self) -> str:
        """The choice with its step time and peak memory, in a line. Raises InfeasibleError if nothing fits."""
        used, limit = self.chosen.peak_bytes / GIBIBYTE, self.planned.memory_limit / GIBIBYTE
        return (
            f"{self.trainer}: {in_words(self.chosen.configuration)}: step {step_in_words(self.chosen)}, peak memory "
            f"{used:.1f} of {limit:.1f} GiB"
        )

    def cluster_of(self, estimate: Estimate) -> Cluster:
        """Return the part of the cluster that a configuration uses; the objective ``gpus`` may leave GPUs unused."""
        return _part_for(estimate, self.cluster)

    def _table(self) -> Iterator[RenderableType]:
        """Return the parts of the table that ``print()`` shows."""
        yield line(self.heading, "bold")
        if self.best is None:
            yield from miss_parts(self.planned, self.miss)
            return
        yield from choice_parts(self.planned, self.best)
        if self.flags:
            yield line(f"flags: --flags {'|'.join(self.flags)} prints those of one trainer's own plan")

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        planned = self.planned
        rows: list[tuple[str, Estimate, str]] = [] if self.best is None else [("best", self.best, "")]
        rows += [("runner-up", runner.estimate, runner.lost_because) for runner in planned.runners_up]
        rows += [("front", estimate, "") for estimate in planned.front]
        return [{"is": what, "lost_because": why, **_row(estimate)} for what, estimate, why in rows]

    def __repr__(self) -> str:
        if self.best is None:
            return f"<Plan for {self.heading}: no configuration fits>"
        return (
            f"<Plan for {self.heading} with {self.trainer}: {in_words(self.best.configuration)}; step "
            f"{self.best.step_time:.4g} s, peak {self.best.peak_bytes / GIBIBYTE:.1f} GiB>"
        )


def plan_of(
    model: ModelShape,
    cluster: Cluster,
    planned: PlanResult,
    calibration: Calibration | None = None,
    versions: Mapping[str, str] = MappingProxyType({}),
) -> Plan:
    """Return the planner's answer as a plan.

    ``versions`` are the releases that flags are for, by trainer; other trainers have the newest known one.
    """
    best, closest, searched, pipelined = planned.best, planned.closest_miss, planned.searched, planned.pipelined
    result: Result | None = None
    flags: dict[str, TrainerSettings] = {}
    records: dict[str, FlagsRecord] = {}
    if best is not None:
        result = simulated(model, _part_for(best, cluster), best.configuration, calibration)
        flags, records = _flags(model, cluster, planned, result, versions)

    def fields_of(estimate: Estimate) -> dict[str, Any]:
        configuration = estimate.configuration
        return asdict(estimate) | {
            "words": in_words(configuration),
            "layout": layout_in_words(configuration),
            "recompute": recompute_in_words(configuration),
            "document": configuration_document(model, _part_for(estimate, cluster), configuration),
        }

    def beaten(runner: RunnerUp) -> RunnerUpRecord:
        return RunnerUpRecord(**fields_of(runner.estimate), lost_because=runner.lost_because)

    shown = closest.estimate if best is None and closest is not None else best
    return holding(
        Plan(
            heading=heading_of(model, cluster, shown),
            trainer="" if best is None else planned.trainer or trainer_of(best.configuration) or next(iter(flags)),
            by_trainer=tuple(map(_own_plan, planned.by_trainer)),
            miss=miss_of(planned),
            model=model,
            cluster_record=_cluster_record(cluster),
            objective=planned.objective,
            memory_limit_gib=planned.memory_limit / GIBIBYTE,
            best=None if best is None else BestConfiguration(**fields_of(best), flags=records),
            given_up=planned.given_up,
            simpler_because=planned.simpler_because,
            fit=planned.fit,
            unusual=planned.unusual,
            pipelined=None
            if pipelined is None
            else PipelinedRecord(
                **fields_of(pipelined.estimate), won=pipeline_won(planned), because=pipelined_because(planned)
            ),
            runners_up=tuple(map(beaten, planned.runners_up)),
            front=tuple(PlannedConfiguration(**fields_of(entry)) for entry in planned.front),
            sensitivity=planned.sensitivity,
            closest_miss=None
            if closest is None
            else MissRecord(
                **fields_of(closest.estimate), over_by_gib=closest.over_by / GIBIBYTE, change=closest.change
            ),
            searched=None
            if searched is None
            else SearchedRecord(
                **fields_of(searched.estimate),
                instead_of_s=searched.instead_of,
                found_by=searched.found_by,
                optimality_gap=searched.optimality_gap,
            ),
            counts=planned.counts,
            seconds=planned.seconds,
            complete=planned.complete,
            optimality_gap=None if best is None else planned.optimality_gap,
            left_out=planned.left_out,
            totals=planned.totals,
            remarks=() if best is None else remarks_of(planned),
        ),
        cluster=cluster,
        planned=planned,
        calibration=calibration,
        flags=flags,
        best_result=result,
    )


def _flags(
    model: ModelShape, cluster: Cluster, planned: PlanResult, best: Result, versions: Mapping[str, str]
) -> tuple[dict[str, TrainerSettings], dict[str, FlagsRecord]]:
    """Return the flags of each trainer's own plan, and of a trainer that runs any schedule those of the best.

    A plan without trainers has all trainers' flags of the best.
    """
    chosen = planned.best
    assert chosen is not None
    if not planned.by_trainer:
        part = _part_for(chosen, cluster)
        flags = flags_of(model, part, chosen.configuration, best.schedule, versions=versions)
        return flags, flags_of_one(model, part, flags, chosen)
    own = {plan.trainer: (plan.estimate, plan.fit) for plan in planned.by_trainer}
    flags, records = {}, {}
    for name, trainer in plan_trainers().items():
        estimate, fit = (chosen, planned.fit) if trainer.schedules is None else own.get(name, (None, None))
        if estimate is None:
            continue
        part, configuration = _part_for(estimate, cluster), estimate.configuration
        schedule = best.schedule if configuration == chosen.configuration else schedule_for(model, part, configuration)
        flags[name] = plan_flags(trainer, model, part, configuration, schedule, versions.get(name))
        records[name] = flags_record(name, flags[name], estimate, fit, trainer.release(versions.get(name)))
    return flags, records


def _own_plan(plan: TrainerPlan) -> TrainerPlanRecord:
    estimate = plan.estimate
    return TrainerPlanRecord(
        trainer=plan.trainer,
        configuration="" if estimate is None else in_words(estimate.configuration),
        software="" if estimate is None else estimate.configuration.software,
        step_time_s=None if estimate is None else estimate.step_time,
        peak_memory_gib=None if estimate is None else estimate.peak_memory_gib,
        fit=plan.fit,
        reason=plan.reason,
    )


def _part_for(estimate: Estimate, cluster: Cluster) -> Cluster:
    per_node = min(cluster.per_node, estimate.configuration.gpus)
    return part_of(cluster, estimate.configuration.gpus // per_node, per_node)


def _cluster_record(cluster: Cluster) -> ClusterRecord:
    gpu = {field.name: getattr(cluster.gpu, field.name) for field in fields(cluster.gpu)}
    return ClusterRecord(
        per_node=cluster.per_node,
        nodes=cluster.nodes,
        gpus=cluster.gpus,
        joined=cluster.joined,
        inside=cluster.inside,
        between=cluster.between,
        gpu=GpuRecord(**gpu | {"peak": dict(cluster.gpu.peak)}),
    )


def _row(estimate: Estimate) -> dict[str, Any]:
    chosen = estimate.configuration
    figures = {
        "step_time_s": estimate.step_time,
        "peak_memory_gib": estimate.peak_memory_gib,
        "tokens_per_s": estimate.tokens_per_second,
        "mfu": estimate.mfu,
    }
    return {"configuration": in_words(chosen), "layout": layout_in_words(chosen), **figures, **asdict(estimate.time)}
