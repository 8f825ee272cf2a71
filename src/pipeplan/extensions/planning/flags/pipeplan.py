"""pipeplan as a trainer: its own command simulates a plan's pipeline with the planned stage costs."""

from __future__ import annotations

from typing import Any

import msgspec

from pipeplan.costs import Costs, settings_of
from pipeplan.extensions.planning import (
    Configuration,
    configuration_document,
    costs_of,
    estimate,
    schedule_of,
    software,
    stage_costs,
)
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.formats import TrainerSettings, schedule_json
from pipeplan.foundation.files import file_name
from pipeplan.model import Schedule
from pipeplan.simulation import simulate
from pipeplan.strategies import is_strategy
from pipeplan.trainers import TRAINERS


def plan_flags(
    model: ModelShape, cluster: Cluster, configuration: Configuration, schedule: Schedule, version: str | None = None
) -> TrainerSettings:
    """Return ``pipeplan estimate`` of the configuration, and ``pipeplan simulate`` with a config file of its stage costs.

    The stage costs come with the time that the step adds after the pipeline. A schedule that no strategy generates is
    written as a file, too. Raises InputError for any ``version``.
    """
    TRAINERS["pipeplan"].release(version)
    costs = costs_of(stage_costs(model, cluster, configuration), configuration)
    estimated = estimate(model, cluster, configuration, schedule=schedule, with_error_bar=False)
    timeline = simulate(schedule, costs).timeline
    pipeline = timeline.makespan if software(configuration.software).barrier else timeline.longest_span
    stem = file_name(f"{model.name}.{configuration.schedule}")
    configuration_file = f"{file_name(model.name)}.yaml"
    files = {f"{stem}.yaml": _settings(configuration, costs, max(estimated.step_time - pipeline, 0.0))}
    name = configuration.schedule
    if not is_strategy(name) or schedule_of(configuration, costs) != schedule:
        name = f"{stem}.json"
        files[name] = schedule_json(schedule)
    document = msgspec.yaml.encode(configuration_document(model, cluster, configuration)).decode()
    text = (
        f"cat > {configuration_file} <<'YAML'\n{document}YAML\n"
        f"pipeplan estimate {configuration_file}\n"
        f"# With these stage costs the pipeline takes {pipeline:.6g} s and the step {estimated.step_time:.6g} s.\n"
        f"pipeplan simulate {name} --config {stem}.yaml\n"
        f"# Run the same order of ops with a small model: pipeplan run {name} --config {stem}.yaml\n"
    )
    return TrainerSettings(text=text, files=files)


def _settings(configuration: Configuration, costs: Costs, behind: float) -> str:
    settings: dict[str, Any] = {
        "ranks": configuration.pipeline,
        "microbatches": configuration.microbatches,
        "chunks": configuration.chunks,
    }
    if configuration.group_size is not None:
        settings["group_size"] = configuration.group_size
    if configuration.in_flight is not None:
        settings["memory_limit"] = f"{configuration.in_flight:g}act"
    saved = settings_of(costs)
    del saved["stages"]
    settings |= saved | {"step_time": behind}
    return msgspec.yaml.encode(settings).decode()
