"""pipeplan's own command for a configuration: the pipeline simulated again, on the costs that were planned with."""

from __future__ import annotations

from typing import Any

import msgspec

from pipeplan.costs import Costs, settings_of
from pipeplan.errors import InputError
from pipeplan.files import file_name
from pipeplan.formats import schedule_json
from pipeplan.hardware import Cluster
from pipeplan.model import Schedule
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.estimating import estimate
from pipeplan.planner.estimates.running import costs_of, schedule_of
from pipeplan.planner.estimates.software import software
from pipeplan.planner.estimates.stages import stage_costs
from pipeplan.planner.flags.trainer_flags import TrainerFlags
from pipeplan.simulation import simulate
from pipeplan.strategies import is_strategy
from pipeplan.workload import ModelShape


def own(
    model: ModelShape, cluster: Cluster, configuration: Configuration, schedule: Schedule, version: str | None = None
) -> TrainerFlags:
    """``pipeplan simulate`` with a config file of the stages' costs; what the step adds behind the pipeline is in it.

    A schedule that no strategy makes comes as a file, too.

    Raises
    ------
    InputError
        For any ``version``: the command is of the installed one.
    """
    if version is not None:
        raise InputError("pipeplan's own command is of the installed release alone", field="trainer_version")
    costs = costs_of(stage_costs(model, cluster, configuration), configuration)
    found = estimate(model, cluster, configuration, schedule=schedule, with_error_bar=False)
    timeline = simulate(schedule, costs).timeline
    pipeline = timeline.makespan if software(configuration.software).barrier else timeline.longest_span
    stem = file_name(f"{model.name}.{configuration.schedule}")
    files = {f"{stem}.yaml": _settings(configuration, costs, max(found.step_time - pipeline, 0.0))}
    name = configuration.schedule
    if not _made_by_name(configuration, schedule, costs):
        name = f"{stem}.json"
        files[name] = schedule_json(schedule)
    text = (
        f"# The pipeline takes {pipeline:.6g} s and the step {found.step_time:.6g} s, by the costs of the stages in the "
        "file.\n"
        f"pipeplan simulate {name} --config {stem}.yaml\n"
        f"# The same order of ops on a small model of pipeplan's own: pipeplan run {name} --config {stem}.yaml\n"
    )
    return TrainerFlags(text=text, files=files)


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
    given = settings_of(costs)
    del given["stages"]
    settings |= given | {"step_time": behind}
    return msgspec.yaml.encode(settings).decode()


def _made_by_name(configuration: Configuration, schedule: Schedule, costs: Costs) -> bool:
    """Whether the configuration's strategy makes this schedule."""
    if not is_strategy(configuration.schedule):
        return False
    return bool(schedule_of(configuration, costs) == schedule)
