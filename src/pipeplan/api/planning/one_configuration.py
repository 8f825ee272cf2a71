"""One configuration in detail: its schedule on its times, its flags, and its costs as settings of other schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from pipeplan.api.simulating.result import Result, result_of
from pipeplan.costs import Config
from pipeplan.files import GIBIBYTE
from pipeplan.formats import TrainerSettings
from pipeplan.hardware import Cluster
from pipeplan.planner import (
    Calibration,
    Configuration,
    Estimate,
    costs_of,
    default_limit,
    estimate,
    schedule_of,
    stage_costs,
)
from pipeplan.records import Record
from pipeplan.simulation import simulate
from pipeplan.trainers import flags_of
from pipeplan.workload import ModelShape

_MEBIBYTE = 2**20


def simulated(
    shape: ModelShape, machines: Cluster, configuration: Configuration, calibration: Calibration | None = None
) -> Result:
    """Return the simulated schedule of a configuration, with its times and activations.

    Raises PipeplanError for a configuration that cannot be, and for more ops than can be simulated at once.
    """
    costs = costs_of(stage_costs(shape, machines, configuration, calibration=calibration), configuration)
    return result_of(simulate(schedule_of(configuration, costs), costs))


class FlagsRecord(Record, frozen=True, kw_only=True):
    """Flags of one trainer, the files that they name, and warnings on what they cannot express."""

    text: str
    files: dict[str, str]
    warnings: tuple[str, ...]


def flags_record(flags: Mapping[str, TrainerSettings]) -> dict[str, FlagsRecord]:
    """Return flags by trainer."""
    return {
        name: FlagsRecord(text=settings.text, files=dict(settings.files), warnings=settings.warnings)
        for name, settings in flags.items()
    }


class ChosenConfiguration(Estimate, frozen=True, kw_only=True):
    """Configuration of the user's own, and its flags by trainer."""

    flags: dict[str, FlagsRecord]


def look(shape: ModelShape, machines: Cluster, configuration: Configuration) -> tuple[ChosenConfiguration, Result]:
    """Return a configuration's estimate and flags, and its schedule on its times.

    Raises PipeplanError for a configuration that cannot be.
    """
    chosen = estimate(shape, machines, configuration)
    result = simulated(shape, machines, chosen.configuration)
    flags = {} if _fine_tunes(configuration) else flags_of(shape, machines, chosen.configuration, result.schedule)
    return ChosenConfiguration(**asdict(chosen), flags=flags_record(flags)), result


def _fine_tunes(configuration: Configuration) -> bool:
    """Return True for adapters or packed documents, which no trainer's flags here express."""
    return bool(configuration.lora_rank or configuration.document)


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


def _digits(value: float) -> float:
    """Round to four digits, which is more than a prediction is worth."""
    return float(f"{value:.4g}")


def _mebibytes(value: float) -> float:
    return float(round(value / _MEBIBYTE) * _MEBIBYTE)
