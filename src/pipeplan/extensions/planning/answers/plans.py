"""Plans: the configuration to train with, and the reasons for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from pipeplan.answers.headlined import BRIEF, HeadlinedAnswer, ShownOptions, more_details
from pipeplan.answers.parts import line
from pipeplan.answers.simulating.result import Result, view_of_result
from pipeplan.extensions.planning import Calibration, Estimate, Fit
from pipeplan.extensions.planning.answers.one_configuration import flags_record, schedule_for, simulated
from pipeplan.extensions.planning.answers.plan_table import DETAILS, choice_parts, miss_parts, plan_view
from pipeplan.extensions.planning.choice.describing import part_for
from pipeplan.extensions.planning.plan_records import BestConfiguration, FlagsRecord, PlannedConfiguration, PlanResult
from pipeplan.extensions.planning.runs.proposing import FromRuns
from pipeplan.extensions.planning.trainers import plan_flags, plan_trainers
from pipeplan.formats import Content, Format, TimelineContent, TrainerSettings, torch_csv_compute, torch_csv_warnings
from pipeplan.foundation.errors import InfeasibleError, UnknownNameError
from pipeplan.foundation.records import Evidence, holding, replaced
from pipeplan.model import Schedule
from pipeplan.trainers import TRAINERS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.drawing.plan import PlanView

OWN_ENDINGS = (".searched.csv", ".yaml", ".yml", *(f".{trainer}.sh" for trainer in plan_trainers()), ".sh")
"""Suffixes of files that hold the searched order, the best configuration, or the flags of one trainer (``.sh`` alone: of the
assumed one)."""


@final
class Plan(PlanResult, HeadlinedAnswer, frozen=True, kw_only=True, eq=False):
    """The configuration to train a model with on a cluster, and why it is that one.

    ``to_frame()`` has a row per configuration: the best, the runners-up, the front. ``save`` writes ``.json`` (everything),
    ``.png .svg .pdf`` (front, time, memory), ``.yaml`` (the best configuration, for ``pipeplan estimate``), ``.html .csv
    .trace.json`` and the like (its schedule), ``.searched.csv`` (a better order, where one was found), ``.megatron.sh
    .bridge.sh .torchtitan.sh .pipeplan.sh`` (flags). In JSON ``best`` is null, and ``closest_miss`` is not, where nothing
    fits.
    """

    from_runs: FromRuns | UnsetType = UNSET
    """Factors and next run from a ledger of runs; left out without one."""

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
        return plan_of(self, self.calibration, versions)

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

    def _summary_fields(self) -> str:
        return """trainer miss memory_limit_gib best.words best.layout best.recompute best.step_time_s best.error_bar.low
        best.error_bar.high best.error_bar.coverage best.peak_memory_gib best.mfu best.tokens_per_s best.document
        runners_up.words runners_up.step_time_s runners_up.lost_because assumptions.assumed assumptions.instead
        assumptions.setting assumptions.slower assumptions.more_memory_gib closest_miss.words closest_miss.over_by_gib
        closest_miss.change complete optimality_gap totals remarks"""

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
        if self.searched is None:
            raise InfeasibleError(
                "the search found no order better than the published schedules, so there is nothing to write"
            )
        order = self.searched.schedule
        return TrainerSettings(text=torch_csv_compute(order), warnings=torch_csv_warnings(order))

    def configuration_yaml(self) -> str:
        """Return the best configuration as ``estimate`` takes it. Raises InfeasibleError if nothing fits."""
        import yaml

        text: str = yaml.safe_dump(self.chosen.document, sort_keys=False)
        return text

    def plan_view(self) -> PlanView:
        """Return the view of its picture: the Pareto front, the first few step times, and memory of the best one's ranks."""
        return plan_view(self)

    def _below(self, shown: ShownOptions = BRIEF) -> Iterator[RenderableType]:
        """Return the parts of the table that ``print()`` shows."""
        yield line(self.heading)
        if self.best is None:
            yield from miss_parts(self, shown)
            return
        yield from choice_parts(self, self.best, shown)
        if self.from_runs is not UNSET:
            factors, following = self.from_runs.sentences
            yield from map(line, (factors, following) if shown.verbose else (following,))
        others = [name for name in self.flags if name != self.trainer]
        own = f" (or {', '.join(others)}: its own plan)" if others else ""
        yield line(f"what to run: --flags {self.trainer}{own}")
        yield from more_details((*DETAILS, *(() if self.from_runs is UNSET else ("factors of the runs",))), shown)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        rows: list[tuple[str, PlannedConfiguration, str]] = [] if self.best is None else [("best", self.best, "")]
        rows += [("runner-up", runner, runner.lost_because) for runner in self.runners_up]
        rows += [("front", entry, "") for entry in self.front]
        return [{"is": what, "lost_because": why, **_row(estimate)} for what, estimate, why in rows]

    def __repr__(self) -> str:
        if self.best is None:
            return f"<Plan for {self.heading}: no configuration fits>"
        return (
            f"<Plan for {self.heading} with {self.trainer}: {self.best.words}; step {self.best.step_time:.4g} s, "
            f"peak {self.best.peak_memory_gib:.1f} GiB>"
        )


def plan_of(
    result: PlanResult, calibration: Calibration | None = None, versions: Mapping[str, str] = MappingProxyType({})
) -> Plan:
    """Return the planner's result as an answer, with the flags and the schedule of the best configuration.

    ``versions`` are the releases that flags are for, by trainer; other trainers have the newest known one.
    """
    fields, best = asdict(result), result.best
    simulation: Result | None = None
    flags: dict[str, TrainerSettings] = {}
    if best is not None:
        simulation = simulated(result.model, part_for(best, result.cluster), best.configuration, calibration)
        flags, records = _flags(result, best, simulation.schedule, versions)
        fields["best"] = replaced(best, flags=records)
    return holding(
        Plan(**fields),
        model=result.model,
        cluster=result.cluster,
        interrupted=result.interrupted,
        calibration=calibration,
        flags=flags,
        best_result=simulation,
    )


def _flags(
    result: PlanResult, best: BestConfiguration, best_schedule: Schedule, versions: Mapping[str, str]
) -> tuple[dict[str, TrainerSettings], dict[str, FlagsRecord]]:
    """Return the flags of each trainer's own plan, and of a trainer that runs any schedule those of the best."""
    own: dict[str, tuple[Estimate | None, Fit | None]] = {
        plan.trainer: (plan.estimate, plan.fit) for plan in result.by_trainer
    }
    flags, records = {}, {}
    for name, trainer in plan_trainers().items():
        estimate, fit = (best, result.fit) if trainer.schedules is None else own.get(name, (None, None))
        if estimate is None:
            continue
        part, configuration = part_for(estimate, result.cluster), estimate.configuration
        schedule = (
            best_schedule if configuration == best.configuration else schedule_for(result.model, part, configuration)
        )
        flags[name] = plan_flags(trainer, result.model, part, configuration, schedule, versions.get(name))
        records[name] = flags_record(flags[name], estimate, fit, trainer.release(versions.get(name)))
    return flags, records


def _row(estimate: PlannedConfiguration) -> dict[str, Any]:
    figures = {
        "step_time_s": estimate.step_time,
        "peak_memory_gib": estimate.peak_memory_gib,
        "tokens_per_s": estimate.tokens_per_second,
        "mfu": estimate.mfu,
    }
    return {"configuration": estimate.words, "layout": estimate.layout, **figures, **asdict(estimate.time)}
