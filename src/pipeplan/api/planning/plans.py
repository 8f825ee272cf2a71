"""Which configuration to train with: the planner's answer, with what explains it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

from pipeplan.api.planning.configurations import in_words, layout_in_words
from pipeplan.api.planning.estimates import estimate_record
from pipeplan.api.presentable import Presentable
from pipeplan.api.results import Result
from pipeplan.drawing import View
from pipeplan.errors import InfeasibleError, UnknownNameError
from pipeplan.files import GIBIBYTE
from pipeplan.formats import Content, Format, Outcome, TrainerSettings, formats
from pipeplan.model import counted
from pipeplan.readable import percent

if TYPE_CHECKING:
    from rich.console import RenderableType

    # The answer must not load the planner: other answers stand beside it in the table of tables.
    from pipeplan.drawing.plan import PlanView
    from pipeplan.hardware import Cluster
    from pipeplan.planner import Estimate, Planned, TrainerFlags
    from pipeplan.workload import ModelShape

OWN_ENDINGS = (
    ".searched.csv",
    ".yaml",
    ".yml",
    ".megatron.txt",
    ".megatron.sh",
    ".torchtitan.sh",
    ".pipeplan.sh",
    ".sh",
)
"""Of files that hold the order that was searched, the best configuration, or flags: those of one trainer, or of the one that
was assumed."""


@final
@dataclass(frozen=True, eq=False)
class Plan(Presentable):
    """The configuration to train a model with on a cluster, and why it is that one.

    ``to_frame()`` has a row a configuration: the best, the runners-up, the front. ``save`` writes ``.json`` (everything),
    ``.png .svg .pdf`` (front, time, memory), ``.yaml`` (the best configuration, for ``pipeplan estimate``), ``.html .csv
    .trace.json`` and the like (its schedule), ``.searched.csv`` (a better order, where one was found), ``.megatron.sh
    .torchtitan.sh .pipeplan.sh`` (flags).

    Attributes
    ----------
    model, cluster
        What is trained, and where.
    planned
        The planner's answer: ``best``, ``runners_up``, ``front``, ``sensitivity``, ``closest_miss``, ``counts``.
    calibration
        Of one's own GPU, where it was given.
    versions
        Releases that flags are for, by trainer, such as ``{"torchtitan": "main"}``; the newest known one of others.
    """

    model: ModelShape
    cluster: Cluster
    planned: Planned
    calibration: Any = None
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> Estimate | None:
        """What to train with; None where nothing fits."""
        return self.planned.best

    @property
    def chosen(self) -> Estimate:
        """The best one. Raises InfeasibleError where nothing fits, with the closest miss."""
        if self.best is None:
            raise InfeasibleError(self.miss)
        return self.best

    @property
    def miss(self) -> str:
        """Why nothing fits and what would, in a sentence or two; empty where something does."""
        closest = self.planned.closest_miss
        if self.best is not None or closest is None:
            return "" if self.best is not None else "nothing fits"
        return (
            f"nothing fits into {self.planned.memory_limit / GIBIBYTE:.1f} GiB a GPU: the nearest "
            f"({in_words(closest.estimate.configuration)}) needs {closest.estimate.peak_bytes / GIBIBYTE:.1f} GiB, "
            f"{closest.over_by / GIBIBYTE:.1f} too many; {closest.change}"
        )

    @cached_property
    def result(self) -> Result:
        """The schedule of the best one on its times, as :func:`pipeplan.simulate` gives it. Raises InfeasibleError."""
        from pipeplan.api.looks import simulated

        chosen = self.chosen
        return simulated(self.model, self.cluster_of(chosen), chosen.configuration, self.calibration)

    @cached_property
    def flags(self) -> Mapping[str, TrainerFlags]:
        """What to paste, by trainer: the best one's flags, the files that they name, and what they cannot say."""
        from pipeplan.planner import flags_of

        if self.best is None:
            return {}
        machines = self.cluster_of(self.best)
        schedule = self.result.schedule
        return flags_of(self.model, machines, self.best.configuration, schedule, versions=self.versions)

    @property
    def trainer(self) -> str:
        """The trainer whose software the best one was estimated with."""
        software = self.chosen.configuration.software
        return next((name for name in self.flags if software.startswith(name)), next(iter(self.flags)))

    def flags_for(self, trainer: str) -> TrainerFlags:
        """The flags of one trainer. Raises UnknownNameError for another name, InfeasibleError where nothing fits."""
        _ = self.chosen
        if trainer not in self.flags:
            raise UnknownNameError("trainer", trainer, self.flags, field="flags")
        return self.flags[trainer]

    def contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Its record and its picture, and of the best one the schedule with its times."""
        whole = {**super().contents(), "plan picture": lambda _: self.plan_view()}
        if self.best is None:
            return whole
        return whole | {
            "pictures": lambda chosen: [self.result.view(reasons=chosen.explains)],
            "timeline": lambda _: Outcome(
                timeline=self.result.timeline, costs=self.result.costs, figures=self.result.to_dict()
            ),
            "schedule": lambda _: self.result.schedule,
            "costs": lambda _: self.result.costs,
        }

    def own_file(self, name: str) -> TrainerSettings | None:
        """The best configuration as YAML, or a trainer's flags. Raises InfeasibleError where nothing fits."""
        ending = next((each for each in OWN_ENDINGS if name.lower().endswith(each)), None)
        if ending is None:
            return None
        if ending == ".searched.csv":
            return TrainerSettings(text=self._searched_csv())
        if ending in (".yaml", ".yml"):
            return TrainerSettings(text=self.configuration_yaml())
        trainer = ending.split(".")[1]
        found = self.flags_for(self.trainer if ending == ".sh" else trainer)
        return TrainerSettings(text=found.text, files=found.files, warnings=found.warnings)

    def _searched_csv(self) -> str:
        searched = self.planned.searched
        if searched is None:
            raise InfeasibleError(
                "no order of ops was found that is better than the published ones: there is none to write"
            )
        write = formats()["torch-csv"].write_schedule
        assert write is not None
        return write(searched.schedule)

    def configuration_yaml(self) -> str:
        """The best configuration as :func:`pipeplan.estimate` takes it. Raises InfeasibleError where nothing fits."""
        import yaml

        from pipeplan.api.planning.configuration_files import configuration_document

        machines = self.cluster_of(self.chosen)
        document = configuration_document(self.model, machines, self.chosen.configuration)
        text: str = yaml.safe_dump(document, sort_keys=False)
        return text

    def views(self) -> Sequence[View]:
        """None: a plan's picture is that of :meth:`plan_view`, and its schedule's that of ``result``."""
        return []

    def plan_view(self) -> PlanView:
        """What its picture shows: the front, the step's time of the first few, and the memory of the best one's ranks."""
        from pipeplan.api.planning.plan_picture import plan_view

        return plan_view(self)

    @property
    def shown(self) -> list[Estimate]:
        """The best and the runners-up; the closest miss where nothing fits."""
        if self.best is None:
            return [] if self.planned.closest_miss is None else [self.planned.closest_miss.estimate]
        return [self.best, *(runner.estimate for runner in self.planned.runners_up)]

    @property
    def summary(self) -> str:
        """The choice with its step time and peak memory, in a line. Raises InfeasibleError where nothing fits."""
        from pipeplan.api.tables.plans import step_in_words

        used, limit = self.chosen.peak_bytes / GIBIBYTE, self.planned.memory_limit / GIBIBYTE
        return (
            f"{in_words(self.chosen.configuration)}: step {step_in_words(self.chosen)}, peak memory {used:.1f} of "
            f"{limit:.1f} GiB"
        )

    @property
    def unfinished(self) -> str:
        """Notes on work that the budget or an interruption left undone, and its largest possible gain; empty if none."""
        planned = self.planned
        if planned.complete or self.best is None:
            return ""
        why, remedy = (
            ("it was interrupted", "") if planned.interrupted else ("the budget ended", ": --seconds extends it")
        )
        return (
            f"{why} before every configuration was estimated or ruled out{remedy}; by the bounds of the rest, the choice is "
            f"at most {percent(planned.optimality_gap)} above the best"
        )

    @property
    def heading(self) -> str:
        """What is trained, on what, by what."""
        cluster, shown = self.cluster, self.shown
        batch = ""
        if shown:
            asked = shown[0].configuration
            batch = f", {counted(asked.global_batch, 'sequence')} of {asked.sequence:,} tokens"
        nodes = f"{counted(cluster.nodes, 'node')} of {cluster.per_node}"
        return f"{self.model.name} on {cluster.gpus:,} {cluster.gpu.name} ({nodes}){batch}"

    def to_dict(self) -> dict[str, Any]:
        """``best`` with its flags, ``runners_up``, ``front``, ``sensitivity``, ``closest_miss``, and how they were found."""
        planned = self.planned
        return {
            "model": asdict(self.model),
            "cluster": cluster_record(self.cluster),
            "objective": planned.objective,
            "memory_limit_gib": planned.memory_limit / GIBIBYTE,
            "best": None if self.best is None else estimate_record(self.best) | {"flags": flags_record(self.flags)},
            "runners_up": [
                estimate_record(runner.estimate) | {"lost_because": runner.lost_because}
                for runner in planned.runners_up
            ],
            "front": [estimate_record(found) for found in planned.front],
            "sensitivity": [asdict(each) for each in planned.sensitivity],
            "closest_miss": self._miss_record(),
            "searched": self._searched_record(),
            "counts": asdict(planned.counts),
            "seconds": planned.seconds,
            "complete": planned.complete,
            "optimality_gap": None if self.best is None else planned.optimality_gap,
            "left_out": list(planned.left_out),
        }

    def cluster_of(self, found: Estimate) -> Cluster:
        """The part of the cluster that a configuration needs: the objective ``gpus`` leaves some of it alone."""
        from pipeplan.planner import part_of

        per_node = min(self.cluster.per_node, found.configuration.gpus)
        return part_of(self.cluster, found.configuration.gpus // per_node, per_node)

    def _searched_record(self) -> dict[str, Any] | None:
        searched = self.planned.searched
        if searched is None:
            return None
        found = {"found_by": searched.found_by, "optimality_gap": searched.optimality_gap}
        return estimate_record(searched.estimate) | {"instead_of_s": searched.instead_of} | found

    def _miss_record(self) -> dict[str, Any] | None:
        closest = self.planned.closest_miss
        if closest is None:
            return None
        over = {"over_by_gib": closest.over_by / GIBIBYTE, "change": closest.change}
        return estimate_record(closest.estimate) | over

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.plans import plan_parts  # late: tables load rich

        return plan_parts(self)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        planned = self.planned
        found = [] if self.best is None else [("best", self.best, "")]
        found += [("runner-up", runner.estimate, runner.lost_because) for runner in planned.runners_up]
        found += [("front", each, "") for each in planned.front]
        return [{"is": what, "lost_because": why, **_row(each)} for what, each, why in found]

    def __repr__(self) -> str:
        if self.best is None:
            return f"<Plan for {self.heading}: nothing fits>"
        return (
            f"<Plan for {self.heading}: {in_words(self.best.configuration)}; step {self.best.step_time:.4g} s, "
            f"peak {self.best.peak_bytes / GIBIBYTE:.1f} GiB>"
        )


def flags_record(flags: Mapping[str, TrainerFlags]) -> dict[str, Any]:
    """Flags by trainer as plain texts."""
    return {
        name: {"text": found.text, "files": dict(found.files), "warnings": list(found.warnings)}
        for name, found in flags.items()
    }


def cluster_record(cluster: Cluster) -> dict[str, Any]:
    """A cluster as plain numbers: the GPU with its peaks, and the links."""
    gpu = {field.name: getattr(cluster.gpu, field.name) for field in fields(cluster.gpu)}
    links = {"inside": asdict(cluster.inside), "between": asdict(cluster.between)}
    sizes = {"per_node": cluster.per_node, "nodes": cluster.nodes, "gpus": cluster.gpus, "joined": cluster.joined}
    return sizes | links | {"gpu": gpu | {"peak": dict(cluster.gpu.peak)}}


def _row(found: Estimate) -> dict[str, Any]:
    chosen = found.configuration
    figures = {
        "step_time_s": found.step_time,
        "peak_memory_gib": found.peak_bytes / GIBIBYTE,
        "tokens_per_s": found.tokens_per_second,
        "mfu": found.mfu,
    }
    return {"configuration": in_words(chosen), "layout": layout_in_words(chosen), **figures, **asdict(found.time)}
