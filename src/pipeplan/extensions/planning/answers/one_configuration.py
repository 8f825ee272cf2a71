"""One configuration in detail: its schedule on its times, its flags, and its costs as settings of other schedules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from pipeplan.answers.simulating.result import Result, result_of
from pipeplan.costs import Config
from pipeplan.extensions.planning import (
    Calibration,
    Configuration,
    Estimate,
    Fit,
    costs_of,
    default_limit,
    estimate,
    fit_of,
    schedule_of,
    stage_costs,
    widest_limit,
)
from pipeplan.extensions.planning.choice.describing import in_words
from pipeplan.extensions.planning.choice.request import software_of_plans
from pipeplan.extensions.planning.flags import read_configuration
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.plan_records import FlagsRecord
from pipeplan.extensions.planning.trainers import flags_of, plan_trainer, plan_trainers
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.formats import TrainerSettings
from pipeplan.foundation.documents import read_document
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.files import GIBIBYTE, MEBIBYTE
from pipeplan.model import Schedule
from pipeplan.simulation import simulate


def simulated(
    shape: ModelShape, machines: Cluster, configuration: Configuration, calibration: Calibration | None = None
) -> Result:
    """Return the simulated schedule of a configuration, with its times and activations.

    Raises PipeplanError for a configuration that cannot be, and for more ops than can be simulated at once.
    """
    costs = costs_of(stage_costs(shape, machines, configuration, calibration=calibration), configuration)
    return result_of(simulate(schedule_of(configuration, costs), costs))


def schedule_for(shape: ModelShape, machines: Cluster, configuration: Configuration) -> Schedule:
    """Return the schedule of a configuration."""
    return schedule_of(configuration, costs_of(stage_costs(shape, machines, configuration), configuration))


def flags_record(settings: TrainerSettings, estimate: Estimate | None, fit: Fit | None, release: str) -> FlagsRecord:
    """Return the flags of a trainer for a configuration, with the prediction for them."""
    return FlagsRecord(
        text=settings.text,
        files=dict(settings.files),
        warnings=settings.warnings,
        release=release,
        configuration="" if estimate is None else in_words(estimate.configuration),
        software="" if estimate is None else estimate.configuration.software,
        step_time_s=None if estimate is None else estimate.step_time,
        peak_memory_gib=None if estimate is None else estimate.peak_memory_gib,
        fit=fit,
    )


def _record(
    shape: ModelShape, machines: Cluster, name: str, settings: TrainerSettings, chosen: Estimate
) -> FlagsRecord:
    """Return a trainer's flags of a configuration, with the prediction for the trainer's own software."""
    trainer, configuration = plan_trainer(name), chosen.configuration
    own: Estimate | None = chosen
    if trainer.schedules is not None and trainer_of(configuration) != name:
        try:
            with_own = replace(configuration, software=software_of_plans(trainer, machines.gpu))
            runs = configuration.pipeline == 1 or configuration.schedule in trainer.schedules
            own = estimate(shape, machines, with_own, with_error_bar=False) if runs else None
        except PipeplanError:
            own = None
    limit = default_limit(machines)
    fit = None if own is None else fit_of(own.peak_bytes, limit, max(limit, widest_limit(machines)))
    return flags_record(settings, own, fit, trainer.latest)


def trainer_of(configuration: Configuration) -> str:
    """Return the trainer whose software a configuration has; empty if it is of none that plans are for."""
    begins = {
        begin: name
        for name, trainer in plan_trainers().items()
        if trainer.schedules is not None
        for begin in (trainer.software, *trainer.aliases)
    }
    own = max(filter(configuration.software.startswith, begins), key=len, default="")
    return begins.get(own, "")


class ChosenConfiguration(Estimate, frozen=True, kw_only=True):
    """Configuration of the user's own, and its flags by trainer."""

    flags: dict[str, FlagsRecord]


def look(shape: ModelShape, machines: Cluster, configuration: Configuration) -> tuple[ChosenConfiguration, Result]:
    """Return a configuration's estimate and flags, and its schedule on its times.

    Raises PipeplanError for a configuration that cannot be.
    """
    chosen = estimate(shape, machines, configuration)
    result = simulated(shape, machines, chosen.configuration)
    # No trainer's flags here express adapters or packed documents.
    fine_tunes = configuration.lora_rank or configuration.document
    flags = {} if fine_tunes else flags_of(shape, machines, chosen.configuration, result.schedule)
    records = {name: _record(shape, machines, name, settings, chosen) for name, settings in flags.items()}
    return ChosenConfiguration(**asdict(chosen), flags=records), result


def costs_planned_for(model: ModelShape, cluster: Cluster, configuration: Configuration) -> Config:
    """Return a configuration's costs, averaged over its ranks, so that schedules with any number of chunks can use them.

    Times are the mean of the ranks, with the embedding and the head spread over all of them; bytes other than activations
    are those of the rank that holds the most. The limit is the GPU's memory less what a framework reserves.

    Raises PipeplanError for a configuration that cannot be.
    """
    costs = costs_of(stage_costs(model, cluster, configuration), configuration)
    ranks = configuration.pipeline
    predicted = estimate(model, cluster, configuration, with_error_bar=False)
    held = GIBIBYTE * max(rank.total - rank.activations for rank in predicted.memory)

    def mean(values: Any) -> float:
        return float(values.sum()) / ranks

    settings = {
        "ranks": ranks,
        "microbatches": configuration.microbatches,
        "forward_times": _digits(1e3 * mean(costs.forward)),
        "backward_input_times": _digits(1e3 * mean(costs.backward_input)),
        "backward_weight_times": _digits(1e3 * mean(costs.backward_weight)),
        "p2p_time": _digits(1e3 * float(costs.transfer.latency)),
        "time_unit": "ms",
        "activation_bytes": _mebibytes(mean(costs.memory.activation)),
        "weight_activation_bytes": _mebibytes(mean(costs.memory.freed_by_weight)),
        "static_bytes": _mebibytes(held),
        "memory_limit": f"{default_limit(cluster) / GIBIBYTE:.0f}GiB",
    }
    return Config(settings=settings, schedule=configuration.schedule)


def costs_in(path: Path) -> Config:
    """Return the costs of a configuration that comes with pipeplan, as a plan predicts them."""
    return costs_planned_for(*read_configuration(read_document(path, "configuration"), None))


def _digits(value: float) -> float:
    """Round to four digits, which is more than a prediction is worth."""
    return float(f"{value:.4g}")


def _mebibytes(value: float) -> float:
    return float(round(value / MEBIBYTE) * MEBIBYTE)
